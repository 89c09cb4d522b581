import Foundation
@testable import Jetstream
import JetstreamServer
import Testing

private struct TooLong: Error, CustomStringConvertible {
  var description: String { "A message may have 5 characters at most" }
}

/// What the server takes for the body of a message.
private struct ShortText: CodableValue {
  var text = ""

  init() {}

  init(from decoder: any Decoder) throws {
    text = try decoder.singleValueContainer().decode(String.self)
    if text.count > 5 { throw TooLong() }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}

private enum Mood: String, PropertyValue { case calm, cross }

private final class Note: ModelObject {
  @Property var body = ShortText()
  @Property var moods: [Mood] = []
  @Property var link: URL?
}

private final class Room: ModelObject {
  @Property var notes: ModelArray<Note> = []
  @Property var title = ""
}

/// The same of an app that knows no limits.
private final class FreeNote: ModelObject {
  override class var wireName: String { "Note" }
  @Property var body = ""
  @Property var moods: [String] = []
  @Property var link: String?
}

private final class FreeRoom: ModelObject {
  override class var wireName: String { "Room" }
  @Property var notes: ModelArray<FreeNote> = []
  @Property var title = ""
}

@Suite("One mistake is one rejection and one conflict", .paced)
struct RejectionCauseTests {
  private let world = InMemoryWorld()
  private let room = Room()
  private let scope: Scope
  private let client: WorldClient

  init() {
    scope = Scope(name: "Canvas", root: room, ticker: world.serverTicker)
    world.replaced = scope
    world.server.host(scope)
    client = world.addClient(root: FreeRoom())
    client.join()
    world.settle()
  }

  private var own: FreeRoom { client.scope.root as! FreeRoom }

  private func append(_ body: String) {
    let note = FreeNote()
    note.body = body
    own.notes.append(note)
  }

  @Test(
    "A refused addition comes with the insertion that names it, and with the decoder's sentence")
  func addition() throws {
    let handle = client.scope.modify { append("far too long") }
    world.settle()
    #expect(handle.state == .rejected && own.notes.isEmpty)
    let items = client.scope.conflicts.items
    #expect(items.map(\.property) == [nil])
    #expect(items.first?.consequences.map(\.property) == ["notes"])
    guard case .rejected(let error)? = items.first?.reason else {
      Issue.record("It is rejected: \(items)")
      return
    }
    #expect(error.message.hasPrefix("Not valid at 'body': A message may have 5 characters at most"))
    #expect(client.rejections.count == 1)
    guard case .rejected(let rejections)? = handle.error else {
      Issue.record("The handle has the error.")
      return
    }
    #expect(rejections.map(\.consequences.count) == [1] && handle.rejections.count == 2)
    // What does not depend on it counts.
    let other = client.scope.modify {
      append("also too long")
      append("short")
    }
    world.settle()
    #expect(other.state == .partlyRejected || other.state == .rejected)
    #expect(client.scope.conflicts.items.count == 2)
  }

  @Test("An atomic set that is refused is one conflict")
  func atomic() {
    client.scope.modifyAtomically {
      own.title = "title"
      append("far too long")
      append("short")
    }
    world.settle()
    #expect(client.scope.conflicts.items.count == 1 && client.rejections.count == 1)
    let parts = client.scope.conflicts.items.flatMap(\.consequences)
    #expect(Set(parts.map(\.property)) == ["title", "notes", nil] && parts.count == 3)
    #expect(own.title.isEmpty && own.notes.isEmpty)
  }

  @Test("Cases, URLs and elements are refused with a sentence")
  func sentences() {
    let note = FreeNote()
    own.notes.append(note)
    world.settle()
    note.moods = ["calm", "odd"]
    world.settle()
    note.link = "no url at all"
    world.settle()
    let messages = client.rejections
    #expect(messages.count == 2)
    #expect(messages.first?.contains(#"Not valid at 'moods': "odd" is no Mood"#) == true)
    #expect(messages.last?.contains(#"Not valid at 'link': "no url at all" is no URL"#) == true)
  }

  @Test(
    "Replies name the fragment that was rejected for itself, through whatever stands in between")
  func chain() {
    let peer = RawPeer.joined(world)
    func add(_ uuid: UUID, _ properties: JSONObject) -> SyncFragment {
      SyncFragment(.add, uuid: uuid, className: "Shape", properties: properties)
    }
    let canvas = InMemoryWorld()
    let other = RawPeer.joined(canvas)
    let uuids = (0..<3).map { _ in UUID() }
    func list(_ uuid: UUID) -> JSONValue { .array([.string(uuid.wireText)]) }
    let first = other.submit([
      SyncFragment(
        .change, uuid: canvas.canvas.uuid, className: "Canvas",
        properties: ["shapes": list(uuids[0])]),
      add(uuids[0], ["parts": list(uuids[1])]), add(uuids[1], ["parts": list(uuids[2])]),
      add(uuids[2], ["x": "no"]),
    ])
    #expect(first.map(\.causedBy) == [3, 3, 3, nil])
    let second = other.submit([
      add(uuids[2], [:]), add(uuids[0], ["parts": list(uuids[2])]),
      SyncFragment(
        .change, uuid: canvas.canvas.uuid, className: "Canvas",
        properties: ["name": 5, "shapes": list(uuids[0])]),
    ])
    #expect(second.map(\.causedBy) == [2, 2, nil])
    let third = other.submit([
      SyncFragment(.add, uuid: uuids[0], className: "Nothing", properties: [:]),
      SyncFragment(.change, uuid: uuids[0], className: "Nothing", properties: [:]),
      SyncFragment(
        .change, uuid: canvas.canvas.uuid, className: "Canvas",
        properties: ["shapes": list(uuids[0])]),
    ])
    #expect(third.map(\.causedBy) == [nil, 0, 0])
    #expect(peer.syncs.isEmpty)
  }
}

@Suite("Conflicts with consequences")
struct ConsequenceTests: ScriptedSuite {
  let server = ScriptedServer()
  let shape = Shape()

  init() { joinWithShape() }

  private var items: [Conflict] { scope.conflicts.items }

  private func rejectAll(_ body: () -> Void) {
    scope.modify("edit", body)
    guard let sent = server.takeSyncs().last else { return }
    let replies = sent.fragments.indices.map {
      FragmentReply(error: .rejected("no"), causedBy: $0 == 0 ? nil : 0)
    }
    server.deliver([.scopeSyncReply(ScopeSyncReply(replyTo: sent.index, fragmentReplies: replies))])
  }

  @Test("A retry adds the model and inserts it again")
  func retry() throws {
    rejectAll { canvas.shapes.append(Shape()) }
    let item = try #require(items.first)
    #expect(items.count == 1 && item.consequences.count == 1 && canvas.shapes.count == 1)
    #expect(scope.conflicts.items(of: canvas) == [item])
    scope.retry([item])
    #expect(items.isEmpty && canvas.shapes.count == 2)
    #expect(server.takeSyncs().flatMap(\.fragments).map(\.kind) == [.add, .change])
  }

  @Test("Discarding a conflict discards its consequences; a consequence can be discarded alone")
  func discard() throws {
    rejectAll {
      canvas.name = "mine"
      shape.label = "mine"
      shape.x = 5
    }
    #expect(items.map(\.property) == ["name"])
    var gone: [String?] = []
    scope.conflicts.onRemove.listen { gone.append($0.property) }
    let part = try #require(items.first?.consequences.first { $0.property == "label" })
    scope.conflicts.discard(part.id)
    #expect(items.first?.consequences.map(\.property) == ["x"] && gone.isEmpty)
    scope.conflicts.discard(try #require(items.first).id)
    #expect(items.isEmpty && gone == ["name"])
  }

  @Test("What is settled takes its consequences out only as far as they are settled as well")
  func settled() throws {
    rejectAll {
      canvas.name = "mine"
      shape.label = "mine"
      shape.x = 5
    }
    var added: [String?] = []
    scope.conflicts.onAdd.listen { added.append($0.property) }
    scope.modify {
      canvas.name = "anew"
      shape.x = 6
    }
    #expect(items.map(\.property) == ["label"] && added == ["label"])
  }

  @Test("A log keeps consequences, and older peers' replies have none")
  func json() throws {
    rejectAll { canvas.shapes.append(Shape()) }
    let item = try #require(items.first)
    let read = try Conflict(json: try JSONValue(parsing: item.json.text))
    #expect(read.json.text == item.json.text && read.consequences.count == 1)
    #expect(try FragmentReply(json: ["lost": ["a"]]).causedBy == nil)
    let reply = FragmentReply(error: .rejected("no"), causedBy: 3)
    #expect(try FragmentReply(json: reply.json) == reply)
    #expect([reply, reply].cause(of: 0) == nil, "a cause that is none is ignored")
  }
}
