import Foundation
import Jetstream
import Pacing
import Testing

@testable import checkout

@Suite("The checkout", .live, .timeLimit(.minutes(3)))
@MainActor
struct CheckoutTests: CheckoutStage {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  @Test("Of a hundred buyers, ten get the last ten pieces, while the server is killed three times")
  func sellsTheLastPieces() async throws {
    let (first, port) = try await serve(stock: 10)
    var server = first
    let joining = (0..<100).map { number in
      Task { try await Customer("buyer-\(number)", port: port) }
    }
    var customers: [Customer] = []
    for task in joining { customers.append(try await task.value) }
    let calls = try customers.map { customer in
      let item = try customer.mug.uuid
      let checkOut = CheckOut(order: UUID(), buyer: customer.name, item: item, count: 1)
      return (order: checkOut.order, call: try customer.scope.call(checkOut))
    }
    #expect(try customers.allSatisfy { try $0.mug.stock == 9 && $0.shop.orders.count == 1 })

    // In the end there are 190 lines: each call is charged, and 90 of the charges are voided.
    for _ in 0..<3 {
      let count = min(try record().count + 30, 190)
      try await wait { try record().count >= count }
      await server.crash()
      server = try await serve(port: port).process
    }

    var sold: Set<UUID> = []
    var failures: [CheckOut.Failure] = []
    for (order, call) in calls {
      do {
        #expect(try await call.output().total == 950)
        sold.insert(order)
      } catch let failure as CheckOut.Failure {
        failures.append(failure)
      }
    }
    #expect(sold.count == 10 && failures.count == 90)
    // Purchases that were not on the disk are gone after a kill; a charge that was voided because of them is void.
    #expect(failures.allSatisfy { $0 == .soldOut(left: 0) || $0 == .voided })
    try await wait {
      try customers.allSatisfy { try $0.mug.stock == 0 && Set($0.shop.orders.map(\.uuid)) == sold }
    }
    #expect(customers.allSatisfy { $0.scope.conflicts.items.isEmpty })

    await server.crash()
    server = try await serve(port: port).process
    let witness = try await Customer("witness", port: port)
    let orders = Array(witness.shop.orders)
    #expect(try witness.mug.stock == 0 && orders.count == 10 && Set(orders.map(\.uuid)) == sold)
    #expect(Set(orders.map(\.buyer)).count == 10)
    let lines = try record()
    let charged = lines.filter { $0[0] == "charge" }.map { $0[1] }
    let voided = lines.filter { $0[0] == "void" }.map { $0[1] }
    #expect(charged.count == 100 && Set(charged).count == 100)
    #expect(voided.count == 90 && Set(voided).count == 90)
    #expect(Set(charged).subtracting(voided) == Set(orders.compactMap(\.payment?.uuidString)))
    for customer in customers + [witness] { customer.client.close() }
    await server.crash()
  }

  @Test("A buyer without a connection is shown less stock, and what there is when the shop refuses")
  func takesBack() async throws {
    let (server, port) = try await serve(stock: 3)
    let before = try buy("ada mug", port: port)
    try await before.expect("Receipt: 1 mug for 9.50")
    #expect(await before.exitCode() == 0)
    await server.crash()

    let ada = try buy("ada mug 2", port: port)
    try await ada.expect("mug: 2 in stock")
    try await ada.expect("mug: 0 in stock")
    try await ada.expect("You pay 19.00")
    // At another port, where Ada does not come.
    let (other, otherPort) = try await serve()
    let ben = try buy("ben mug", port: otherPort)
    try await ben.expect("Receipt: 1 mug for 9.50")
    await other.crash()

    let (again, _) = try await serve(port: port)
    try await ada.expect("mug: 1 in stock")
    try await ada.expect("Sold out: only 1 left")
    #expect(await ada.exitCode() == 1)
    #expect(try record().map { $0[0] } == ["charge", "charge", "charge", "void"])
    await again.crash()
  }

  @Test("A purchase whose buyer was killed is sent by the buyer's next start, once")
  func survivesKill() async throws {
    let (server, port) = try await serve(stock: 10)
    try await buy("ada mug", port: port).expect("Receipt")
    await server.crash()
    let killed = try buy("ada mug 2", port: port)
    try await killed.expect("You pay 19.00")
    try await waitForLog(of: "ada", toContain: "\"count\":2")
    await killed.crash()
    let (again, _) = try await serve(port: port)
    let ada = try buy("ada mug 3", port: port)
    try await ada.expect("Receipt: 3 mug for 28.50")
    let witness = try await Customer("witness", port: port)
    #expect(witness.shop.orders.map(\.count) == [1, 2, 3])
    #expect(try witness.mug.stock == 4)
    witness.client.close()
    await again.crash()
  }

  @Test("A purchase of the last piece, whose buyer was killed, is sent by the buyer's next start")
  func sendsWhatHasTakenAll() async throws {
    let (server, port) = try await serve(stock: 3)
    try await buy("ada mug", port: port).expect("Receipt")
    await server.crash()
    let killed = try buy("ada mug 2", port: port)
    try await killed.expect("You pay 19.00")
    try await waitForLog(of: "ada", toContain: "\"count\":2")
    await killed.crash()

    let (again, _) = try await serve(port: port)
    let ada = try buy("ada mug", port: port)
    try await ada.expect("Sold out: only 0 left")
    #expect(await ada.exitCode() == 1)
    let witness = try await Customer("witness", port: port)
    #expect(witness.shop.orders.map(\.count) == [1, 2])
    #expect(try witness.mug.stock == 0)
    #expect(try record().map { $0[0] } == ["charge", "charge"])
    witness.client.close()
    await again.crash()
  }

  @Test("A server whose output is closed prints nothing into its record of charges")
  func closedOutput() async throws {
    let port = "\(keptPort())"
    let server = try CheckoutProcess(
      ["serve", "--port", port, "--data", directory.path], redirection: ">&-")
    let ada = try buy("ada mug", port: port)
    try await ada.expect("Receipt: 1 mug for 9.50")
    await server.crash()
    #expect(try record().map { $0[0] } == ["charge"])
    let (again, _) = try await serve(port: port)
    let ben = try buy("ben mug", port: port)
    try await ben.expect("Receipt: 1 mug for 9.50")
    await again.crash()
  }

  @Test("An address that cannot work is refused before there is a purchase")
  func refusesAddress() async throws {
    let buyer = try CheckoutProcess([
      "buy", "ada", "mug", "--server", "http://127.0.0.1:1", "--data", directory.path,
    ])
    let complaint = await buyer.complaints()
    #expect(complaint.contains("'http://127.0.0.1:1' is no address"), "\(complaint)")
    #expect(await buyer.exitCode() == 2)
    #expect(!FileManager.default.fileExists(atPath: "\(directory.path)/buyers"))
  }

  @Test("A server that cannot start says why in a sentence, and help is no error")
  func explains() async throws {
    let (server, port) = try await serve()
    let other = try TemporaryDirectory()
    let second = try CheckoutProcess(["serve", "--port", port, "--data", other.path])
    let complaint = await second.complaints()
    #expect(
      complaint == "checkout: port \(port) is taken; choose another one with --port")
    await server.crash()
    try Data().write(to: URL(filePath: "\(other.path)/file"))
    let third = try CheckoutProcess(["serve", "--data", "\(other.path)/file"])
    let reason = await third.complaints()
    #expect(
      reason.hasPrefix("checkout: \(other.path)/file cannot be used: ")
        && !reason.contains("Error Domain"), "\(reason)")
    let help = try CheckoutProcess(["--help"])
    #expect(await help.rest().contains { $0.hasPrefix("USAGE: checkout serve") })
    #expect(await help.exitCode() == 0)
  }

  @Test("A client cannot change the stock or the orders directly, and is told the reason")
  func deniesChanges() async throws {
    let (server, port) = try await serve(stock: 10)
    let (mallory, ada) = try await (Customer("mallory", port: port), Customer("ada", port: port))
    let mug = try mallory.mug
    #expect(
      try await mallory.reasons { mug.stock += 5 } == ["Only a purchase changes the stock"])
    #expect(
      try await mallory.reasons { mug.price = 1 } == ["Only the shop changes its items"])
    #expect(
      try await mallory.reasons { mallory.shop.orders.append(Order()) }
        == ["Only a purchase makes an order"])
    #expect(mug.stock == 10 && mug.price == 950 && mallory.shop.orders.isEmpty)

    let checkOut = CheckOut(order: UUID(), buyer: "ada", item: mug.uuid, count: 1)
    _ = try await ada.scope.call(checkOut).output()
    try await wait { mallory.shop.orders.count == 1 }
    #expect(
      try await mallory.reasons { mallory.shop.orders[0].buyer = "mallory" }
        == ["An order stays as it is"])
    #expect(
      try await mallory.reasons { mallory.shop.orders.removeAll() } == ["An order stays as it is"])
    #expect(mallory.shop.orders.first?.buyer == "ada")
    #expect(try ada.mug.stock == 9 && ada.mug.price == 950 && ada.shop.orders.count == 1)
    for client in [mallory.client, ada.client] { client.close() }
    await server.crash()
  }

  @Test("Calls in another name, and with arguments that no client makes, are refused uncharged")
  func refusesForgeries() async throws {
    let (server, port) = try await serve(stock: 10)
    let mallory = try await Customer("mallory", port: port)
    let mug = try mallory.mug
    let call = try mallory.scope.call(Forgery(buyer: "ada", item: mug.uuid))
    await #expect(
      throws: ChangeSetError.procedureFailed(.rejected("You can only buy in your own name"))
    ) { try await call.output() }
    for forgery in [
      Forgery(buyer: "mallory", item: mug.uuid, count: -5),
      Forgery(buyer: "mallory", item: mug.uuid, count: .max),
      Forgery(order: mug.uuid, buyer: "mallory", item: mug.uuid),
      Forgery(order: mallory.shop.uuid, buyer: "mallory", item: mug.uuid),
      Forgery(buyer: "mallory", item: UUID()),
    ] {
      let call = try mallory.scope.call(forgery)
      await #expect(throws: CheckOut.Failure.impossible) { try await call.output() }
    }
    #expect(mug.stock == 10 && mallory.shop.orders.isEmpty)
    #expect(try record().isEmpty)
    mallory.client.close()
    await server.crash()
  }
}

@Suite("The record of charges")
struct ChargesTests {
  private let directory: TemporaryDirectory
  private var path: String { "\(directory.path)/charges" }

  init() throws { directory = try TemporaryDirectory() }

  private var lines: [String] {
    get throws {
      try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map(String.init)
    }
  }

  @Test("A call is charged and voided once, also after a restart, and not charged again when void")
  func once() async throws {
    let (kept, given) = (UUID(), UUID())
    for _ in 0..<2 {
      let charges = try Charges(path)
      for _ in 0..<2 {
        #expect(try await charges.charge(kept, 950, to: "ada"))
        try await charges.void(UUID())
      }
    }
    for _ in 0..<2 {
      let charges = try Charges(path)
      _ = try await charges.charge(given, 1_900, to: "ben")
      for _ in 0..<2 {
        try await charges.void(given)
        #expect(try await !charges.charge(given, 1_900, to: "ben"))
      }
    }
    #expect(try lines == ["charge \(kept) 950 ada", "charge \(given) 1900 ben", "void \(given)"])
  }

  @Test("A part of a line, as a kill leaves it, is overwritten")
  func torn() async throws {
    let call = UUID()
    try Data("charge \(call) 950 ada\nvoid \(call)".utf8).write(to: URL(filePath: path))
    let charges = try Charges(path)
    #expect(try await charges.charge(call, 950, to: "ada"))
    let next = UUID()
    #expect(try await charges.charge(next, 1, to: "b"))
    #expect(try lines == ["charge \(call) 950 ada", "charge \(next) 1 b"])
  }
}
