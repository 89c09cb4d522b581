import Foundation
import Jetstream
import JetstreamServer

/// The server: hosts the shop, and sells.
@MainActor
final class ShopServer {
  private let folder: String
  private let server: Server
  private let shop = Shop()
  private let charges: Charges

  init(folder: String) throws {
    self.folder = folder
    do {
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      charges = try Charges("\(folder)/charges")
    } catch {
      throw Problem("\(folder) cannot be used: \(error.localizedDescription)")
    }
    var configuration = Server.Configuration()
    configuration.rules = { _ in ShopRules.all }
    server = Server(configuration: configuration)
  }

  /// Reads the log and begins to listen. Returns the port.
  ///
  /// - Parameter stock: the number of pieces of each item with which a new shop begins.
  func start(port: UInt16, stock: Int) async throws -> UInt16 {
    let scope = Scope(name: "shop", root: shop)
    try await server.host(scope, log: FragmentLog("\(folder)/shop"))
    if shop.items.isEmpty {
      for (name, price) in [("mug", 950), ("teapot", 2_400)] {
        let item = Item()
        (item.name, item.price, item.stock) = (name, price, stock)
        shop.items.append(item)
      }
    }
    server.authenticate = { session in
      guard case .object(let params) = session.params, case .string(let name)? = params["name"],
        isName(name)
      else { throw WireError.rejected("A name has up to 20 small letters, digits and hyphens") }
      return Principal(name)
    }
    server.procedure(CheckOut.self) { [unowned self] in try await sell($0, $1) }
    server.onDiagnostic.listen {
      if $0.level >= .warning { Command.say("note: \($0)") }
    }
    do {
      return try await server.listen(port: port)
    } catch {
      if case .bindFailed(EADDRINUSE) = error {
        throw Problem("port \(port) is taken; choose another one with --port")
      }
      throw Problem("it cannot listen on port \(port): \(error)")
    }
  }

  /// Charges a call, makes the order, and voids the charge if there is no order.
  ///
  /// A server that is killed in between is asked again for the same call, with the same id. So it is charged once; a charge
  /// that was voided is never used for an order.
  private func sell(_ checkOut: CheckOut, _ request: ProcedureRequest) async throws {
    guard checkOut.buyer == request.session.principal?.id else {
      throw WireError.rejected("You can only buy in your own name")
    }
    let total = try request.read { (shop: Shop) in try checkOut.bill(in: shop).total }
    do {
      guard try await charges.charge(request.id, total, to: checkOut.buyer) else {
        throw CheckOut.Failure.voided
      }
      // Others have bought meanwhile: what is there now decides.
      try request.commit { (shop: Shop) in
        let receipt = try checkOut.run(on: shop)
        guard receipt.total == total else { throw CheckOut.Failure.priceChanged }
        shop.orders.last?.payment = request.id
        return receipt
      }
    } catch {
      // A call that is made again, with the same id, finds its charge. If the call has taken too long, this task is
      // cancelled, in which a real payment service could not be reached any more.
      if !request.comesAgain { try await Task { try await charges.void(request.id) }.value }
      throw error
    }
  }
}
