import Foundation
import Jetstream
import Pacing
import Testing

@testable import checkout

/// A test that runs servers and buyers with one data folder.
@MainActor
protocol CheckoutStage {
  var directory: TemporaryDirectory { get }
}

extension CheckoutStage {
  /// Starts a server and returns it once it listens, with its port.
  func serve(
    port: String = "\(keptPort())", stock: Int = 10
  ) async throws -> (process: CheckoutProcess, port: String) {
    let server = try CheckoutProcess([
      "serve", "--port", port, "--data", directory.path, "--stock", "\(stock)",
    ])
    try await server.expect("Serving on ws://127.0.0.1:\(port)")
    return (server, port)
  }

  /// Starts a buyer, such as `ada mug 2`.
  func buy(_ words: String, port: String) throws -> CheckoutProcess {
    try CheckoutProcess(
      ["buy"] + words.split(separator: " ").map(String.init)
        + ["--server", "ws://127.0.0.1:\(port)", "--data", directory.path])
  }

  /// Waits until a buyer's log contains a text. It is written beside the main actor; the screen does not tell when that is
  /// done.
  func waitForLog(of buyer: String, toContain text: String) async throws {
    let log = "\(directory.path)/buyers/\(buyer)"
    try await wait {
      try FileManager.default.contentsOfDirectory(atPath: log).contains { name in
        let data = try Data(contentsOf: URL(filePath: "\(log)/\(name)"))
        return String(decoding: data, as: UTF8.self).contains(text)
      }
    }
  }

  /// Returns the lines of the record of charges that are complete, each as its words.
  func record() throws -> [[String]] {
    let text = try String(contentsOfFile: "\(directory.path)/charges", encoding: .utf8)
    return text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
      .map { $0.split(separator: " ").map(String.init) }
  }
}

/// A client of the library in the shop, without a log.
@MainActor
final class Customer {
  let name: String
  let shop = Shop()
  let client: Client
  let scope: Scope

  init(_ name: String, port: String) async throws {
    self.name = name
    client = Client(
      url: "ws://127.0.0.1:\(port)",
      backoff: Backoff(first: .milliseconds(20), limit: .milliseconds(200)))
    scope = Scope(name: "shop", root: shop)
    try await client.connect(params: ["name": .string(name)])
    try await client.fetch(scope)
  }

  var mug: Item { get throws { try #require(shop.item(named: "mug")) } }

  /// Makes a change and returns the reasons for which the server has refused parts of it.
  func reasons(for change: () throws -> Void) async throws -> Set<String> {
    for conflict in scope.conflicts.items { scope.conflicts.discard(conflict.id) }
    try change()
    try await client.waitForUpload(of: scope)
    return Set(
      scope.conflicts.items.compactMap {
        if case .rejected(let error) = $0.reason { error.message } else { nil }
      })
  }
}

/// A call of ``CheckOut`` by a client that does not look at its arguments.
struct Forgery: Procedure {
  static let name = CheckOut.name
  var order = UUID()
  let buyer: String
  let item: UUID
  var count = 1

  func run(on shop: Shop) throws(CheckOut.Failure) -> CheckOut.Receipt {
    CheckOut.Receipt(total: 0, left: 0)
  }
}
