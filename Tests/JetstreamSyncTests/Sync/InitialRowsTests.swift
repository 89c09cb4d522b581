import Foundation
import JetstreamServer
import Testing

@testable import Jetstream

private final class Tally: ModelObject {
  @Property(.counter) var count = 10
  @Property(.counter) var other = 10
  @Property var ratio = 0.5
  @Property var name = "none"
}

/// The past of clients whose classes have other default values than empty ones.
@Suite("Initial content beside default values, without classes", .live)
@MainActor
struct InitialRowsTests {
  private let files = try! TemporaryDirectory()

  @Test("It stays where the server has the default values, at each record of the client's log")
  func defaults() async throws {
    let server = Server()
    let theirs = Tally()
    theirs.other = 20
    server.host(Scope(name: "Tally", root: theirs))
    let log = try FragmentLog(files.path)
    let tally = Tally()
    let client = Client(transport: server.makeTransport())
    let scope = Scope(name: "Tally", root: tally)
    try client.fetch(scope, log: log) {
      tally.count += 2
      tally.other += 3
      tally.ratio = 0.25
    }
    try await client.connect()
    try await client.waitForDownload(of: scope)
    try await client.sync(scope)
    #expect(tally.count == 12 && tally.other == 20 && theirs.count == 12 && theirs.other == 20)
    client.close()
    try await log.close()

    let reader = try LogReader(files.path)
    let last = try #require(try reader.verify().records?.upperBound)
    var counts: Set<Int> = []
    for sequence in 2...last {
      let then = Tally()
      try reader.restore(into: Scope(name: "Then", root: then, ticker: .manual()), at: sequence)
      let rows = try reader.rows(at: sequence)
      let values = rows.root.flatMap { rows[$0]?.properties }
      #expect(values?["count"] == .integer(Int64(then.count)), "at \(sequence)")
      #expect(values?["other"] == .integer(Int64(then.other)), "at \(sequence)")
      #expect(values?["ratio"] == .double(then.ratio), "at \(sequence)")
      counts.insert(then.count)
    }
    #expect(counts == [12])
    #expect(try reader.writes(to: "count", of: tally.uuid).count == 1)
    #expect(try reader.writes(to: "other", of: tally.uuid).isEmpty)
  }
}
