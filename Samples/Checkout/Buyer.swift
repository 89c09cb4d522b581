import Foundation
import Jetstream

/// The client of one buyer. It works from its log, and sends what it has bought whenever there is a server.
@MainActor
final class Buyer {
  private let name: String
  private let client: Client
  private let shop = Shop()
  private let scope: Scope
  private var lastLine = ""

  init(_ name: String, server: String, folder: String) throws {
    self.name = name
    client = Client(url: server, backoff: Backoff(limit: .seconds(1)))
    scope = Scope(name: "shop", root: shop)
    client.credentials = { _ in Credentials(params: ["name": .string(name)]) }
    try client.fetch(scope, log: FragmentLog("\(folder)/buyers/\(name)"))
  }

  /// Begins to connect, and goes on in the background until there is a server. Calls `onRefusal` if that does not want this
  /// client.
  func connect(onRefusal: @escaping (any Error) -> Void) {
    Task {
      do { try await client.connect() } catch { onRefusal(error) }
    }
  }

  /// Buys some pieces, and shows the outcome. Returns false if the buyer does not get them.
  ///
  /// A purchase that an earlier process has left behind is answered first: until then nothing is known of what it takes.
  func buy(_ itemName: String, count: Int) async throws -> Bool {
    // Only the first time there is nothing to show without a server.
    if shop.item(named: itemName) == nil { try await client.waitForDownload(of: scope) }
    if let state = client.syncState(of: scope), state.pendingCount > 0 {
      Command.say("An earlier purchase waits for the shop's answer")
      try await client.waitForUpload(of: scope)
    }
    guard let item = shop.item(named: itemName) else {
      let names = shop.items.map(\.name).joined(separator: ", ")
      Command.say("There is no \(itemName); there is \(names)")
      return false
    }
    show(item)
    item.observeChange(self, \.stock) { [unowned item] me, _, _ in me.show(item) }
    do {
      let checkOut = CheckOut(order: UUID(), buyer: name, item: item.uuid, count: count)
      let call = try await call(checkOut)
      show(item)
      Command.say("You pay \(money(item.price * count)), once the shop has answered")
      let receipt = try await call.output()
      show(item)
      let paid = money(receipt.total)
      Command.say("Receipt: \(count) \(itemName) for \(paid), order \(checkOut.order)")
      return true
    } catch let failure as CheckOut.Failure {
      // Here or, a moment later, on the server: what was taken is back.
      show(item)
      Command.say(failure.localizedDescription)
      return false
    }
  }

  /// Calls the procedure. If it fails here, the stock that the log has may be an old one: then it fails on what the shop has
  /// now, or not at all.
  private func call(_ checkOut: CheckOut) async throws -> ProcedureCall<CheckOut> {
    do {
      return try scope.call(checkOut)
    } catch is CheckOut.Failure {
      try await client.waitForDownload(of: scope)
      return try scope.call(checkOut)
    }
  }

  /// Writes a line with the stock, unless it would be the same again. The stock is below zero while others have bought what
  /// this buyer waits for.
  private func show(_ item: Item) {
    let line = "\(item.name): \(max(item.stock, 0)) in stock, \(money(item.price)) each"
    guard line != lastLine else { return }
    lastLine = line
    Command.say(line)
  }
}
