import Foundation
import Jetstream
import JetstreamServer
import Testing

/// Local changes in the middle of a frame, of entries that the frame has changed before.
@Suite("Entries of a dictionary that are written in the middle of a frame", .paced)
struct CoveredEntriesTests {
  private let server = ScriptedServer()
  private let mine = Shape()
  private let theirs = Shape()

  /// Joins, with two models to which entries can refer.
  private func join() {
    server.joinAtPosition(ScopePosition(epoch: "e", sequence: 7))
    server.canvas.shapes = [mine, theirs]
    server.scope.flush()
  }

  /// The text of a change set of others that makes entries.
  private func frame(_ count: Int) -> String {
    let entries = JSONObject(
      (0..<count).map { ("named/\($0)", .string(theirs.uuid.wireText)) })
    let fragment = SyncFragment(
      .change, uuid: server.canvas.uuid, className: "Canvas", properties: entries)
    var sync = ScopeSync(index: 0, scopeIndex: 0, fragments: [fragment])
    sync.sequence = 8
    // The client tells its app of the message that it cannot read.
    return #"[\#(Message.scopeSync(sync).json.text),{"type":"ScopeCursor","index":0}]"#
  }

  /// Has the app write entries when the client has skipped a message.
  private func writeWhenSkipped(_ keys: Range<Int>) {
    server.onDiagnostic = { [server, mine] _ in
      server.scope.modify {
        for key in keys { server.canvas.named["\(key)"] = mine }
      }
    }
  }

  @Test("They stay in front of the frame's, which stay beneath them")
  func inFront() throws {
    join()
    writeWhenSkipped(1..<3)
    let first = try #require(server.takeSyncs().last?.index)
    server.receive(text: frame(4))
    #expect(server.canvas.named.count == 4)
    for key in 0..<4 {
      #expect(server.canvas.named["\(key)"] === ((1..<3).contains(key) ? mine : theirs))
    }
    let second = try #require(server.takeSyncs().last?.index)
    let replies = [(first, FragmentReply()), (second, FragmentReply(error: .rejected("no")))]
    for (at, (index, reply)) in replies.enumerated() {
      server.receive(
        .scopeSyncReply(
          ScopeSyncReply(index: 3 + at, replyTo: index, fragmentReplies: [reply])))
    }
    for key in 0..<4 { #expect(server.canvas.named["\(key)"] === theirs) }
    #expect(server.engine.checkInvariants() == [])
  }

  @Test("Writing many of them takes linear time")
  func many() {
    let found = growth(from: 500) { count in
      let tests = CoveredEntriesTests()
      tests.join()
      tests.writeWhenSkipped(0..<count)
      let text = tests.frame(count)
      return {
        tests.server.receive(text: text)
        #expect(tests.server.canvas.named["0"] === tests.mine)
      }
    }
    #expect(found < mostLinearGrowth)
  }
}
