import Foundation
import Jetstream
import JetstreamServer
import Testing

/// What the old Node server makes of messages, as far as fragments have to fit together.
private final class OldScope {
  private(set) var models: [String: JSONObject] = [:]
  private let root: String
  /// The most fragments that a message had.
  private(set) var largest = 0
  /// Models that the server refuses to add.
  var refused: Set<UUID> = []
  /// Whether the last messages with more than one part are refused as a whole.
  var problems: [String] = []

  init(_ state: [SyncFragment]) {
    root = state[0].uuid.wireText
    for fragment in state { models[fragment.uuid.wireText] = fragment.properties }
  }

  func take(_ fragments: [SyncFragment]) -> [FragmentReply] {
    largest = max(largest, fragments.count)
    var replies = fragments.map { _ in FragmentReply() }
    let additions = fragments.filter { $0.kind == .add && !refused.contains($0.uuid) }
    let names = Set(additions.map(\.uuid.wireText))
    let known = names.union(models.keys)
    func refuse(_ at: Int, _ problem: String) {
      replies[at] = FragmentReply(error: WireError(message: problem))
    }
    for (at, fragment) in fragments.enumerated() where fragment.kind == .add {
      let name = fragment.uuid.wireText
      if models[name] != nil {
        refuse(at, "ModelObject with UUID '\(name)' already exists")
      } else if refused.contains(fragment.uuid) {
        refuse(at, "refused")
      } else if let missing = references(fragment.properties).first(where: { !known.contains($0) })
      {
        refuse(at, "No such ModelObject '\(missing)'")
      } else {
        models[name] = fragment.properties
      }
    }
    for (at, fragment) in fragments.enumerated() where fragment.kind == .change {
      let name = fragment.uuid.wireText
      if models[name] == nil || names.contains(name) {
        refuse(at, "ModelObject not found")
      } else if let missing = references(fragment.properties).first(where: { models[$0] == nil }) {
        refuse(at, "No such ModelObject '\(missing)'")
      } else {
        for (key, value) in fragment.properties { models[name]![key] = value }
      }
    }
    let reached = reachable()
    for (at, fragment) in fragments.enumerated()
    where fragment.kind == .add && replies[at].error == nil
      && !reached.contains(fragment.uuid.wireText)
    {
      refuse(at, "No parents, parent sync fragment failed")
    }
    models = models.filter { reached.contains($0.key) }
    return replies
  }

  private func references(_ properties: JSONObject) -> [String] {
    properties.flatMap { entry -> [String] in
      switch entry.value {
      case .string(let text): UUID(wireText: text) == nil ? [] : [text]
      case .array(let elements):
        elements.compactMap {
          if case .string(let text) = $0, UUID(wireText: text) != nil { text } else { nil }
        }
      default: []
      }
    }
  }

  private func reachable() -> Set<String> {
    var (found, open): (Set<String>, [String]) = ([root], [root])
    while let name = open.popLast() {
      for other in references(models[name] ?? [:]) where found.insert(other).inserted {
        open.append(other)
      }
    }
    return found
  }

  /// The elements of the root's collection.
  var shapes: JSONValue? { models[root]?["shapes"] }
}

@Suite("Large change sets towards an old server")
struct SplitSetTests: ScriptedSuite {
  let server = ScriptedServer()
  let shape = Shape()
  private let old: OldScope

  init() {
    server.canvas.shapes = [shape]
    server.scope.flush()
    old = OldScope(server.scope.fullState())
    server.join()
  }

  private func answerAll() {
    for message in server.takeSyncs() {
      server.deliver([
        .scopeSyncReply(
          ScopeSyncReply(replyTo: message.index, fragmentReplies: old.take(message.fragments)))
      ])
    }
  }

  /// The server has what the client shows.
  private func expectEqual(_ comment: Comment? = nil) {
    let state = scope.fullState()
    #expect(Set(state.map(\.uuid.wireText)) == Set(old.models.keys), comment)
    for fragment in state {
      for (key, value) in fragment.properties {
        let theirs = old.models[fragment.uuid.wireText]?[key]
        #expect(theirs?.text == value.text, "\(key) of \(fragment.className)")
      }
    }
    #expect(server.engine.checkInvariants() == [])
    #expect(server.engine.pendingCount == 0)
  }

  @Test(
    "Additions go out in several messages, of which each makes sense for itself",
    arguments: [
      300, 1000,
    ])
  func additions(count: Int) {
    let fate = Fate(
      scope.modify(nil) {
        for number in 0..<count {
          let new = Shape()
          new.x = Float(number)
          canvas.shapes.insert(new, at: number % 2 == 0 ? 0 : canvas.shapes.count)
        }
      })
    answerAll()
    #expect(old.largest <= 100)
    #expect(fate.handle.state == .accepted && fate.isConsistent)
    #expect(fate.handle.outcomes.count == count + 1)
    expectEqual()
  }

  @Test("A tree of additions, references across it, moved models and removals")
  func tree() {
    let others = (0..<5).map { _ in Shape() }
    scope.modify(nil) { canvas.hidden.append(contentsOf: others) }
    answerAll()
    let fate = Fate(
      scope.modify(nil) {
        for branch in 0..<4 {
          let parent = Shape()
          for at in 0..<80 {
            let child = Shape()
            child.x = Float(at)
            if at % 20 == 0 { child.parts.append(Shape()) }
            parent.parts.append(child)
          }
          parent.parts.append(others[branch])
          canvas.shapes.insert(parent, at: 0)
        }
        canvas.hidden.removeAll()
        canvas.selected = canvas.shapes[1].parts[70]
        canvas.shapes.remove(at: canvas.shapes.count - 1)
        canvas.name = "large"
      })
    answerAll()
    #expect(fate.handle.state == .accepted && old.largest <= 100)
    expectEqual()
  }

  @Test("Changes of values go out in several messages, too")
  func changes() {
    let others = (0..<250).map { _ in Shape() }
    scope.modify(nil) { canvas.shapes.append(contentsOf: others) }
    answerAll()
    let fate = Fate(scope.modify(nil) { for other in others { other.x = 7 } })
    answerAll()
    #expect(fate.handle.state == .accepted && old.largest <= 100)
    expectEqual()
  }

  @Test("What others change between two of the messages counts at its place")
  func between() throws {
    let others = (0..<250).map { _ in Shape() }
    scope.modify(nil) { canvas.shapes.append(contentsOf: others) }
    answerAll()
    scope.modify(nil) { for other in others { other.x = 7 } }
    let messages = server.takeSyncs()
    #expect(messages.count == 3)
    func answer(_ message: ScopeSync) {
      server.deliver([
        .scopeSyncReply(
          ScopeSyncReply(replyTo: message.index, fragmentReplies: old.take(message.fragments)))
      ])
    }
    answer(messages[0])
    for uuid in [messages[0].fragments[0].uuid, messages[2].fragments[0].uuid] {
      let theirs = SyncFragment(.change, uuid: uuid, className: "Shape", properties: ["x": 9])
      _ = old.take([theirs])
      server.tell(theirs)
    }
    for message in messages.dropFirst() { answer(message) }
    expectEqual()
    #expect((scope.model(messages[0].fragments[0].uuid) as? Shape)?.x == 9)
    #expect((scope.model(messages[2].fragments[0].uuid) as? Shape)?.x == 7)
  }

  @Test("An addition that is refused takes the rest of its collection with it, and nothing else")
  func refusal() {
    let others = (0..<300).map { _ in Shape() }
    old.refused = [others[150].uuid]
    let fate = Fate(
      scope.modify(nil) {
        canvas.shapes.append(contentsOf: others)
        shape.x = 5
      })
    answerAll()
    #expect(fate.handle.state == .partlyRejected && fate.isConsistent)
    #expect(canvas.shapes.count > 50 && canvas.shapes.count < 200 && shape.x == 5)
    expectEqual()
  }

  @Test("A session that ends in the middle: what was decided is not sent again")
  func lostSession() {
    let others = (0..<300).map { _ in Shape() }
    let fate = Fate(
      scope.modify(nil) {
        canvas.shapes.append(contentsOf: others)
        shape.x = 5
      })
    let messages = server.takeSyncs()
    for message in messages.prefix(2) {
      server.deliver([
        .scopeSyncReply(
          ScopeSyncReply(replyTo: message.index, fragmentReplies: old.take(message.fragments)))
      ])
    }
    let root = SyncFragment(
      .change, uuid: canvas.uuid, className: "Canvas",
      properties: old.models[canvas.uuid.wireText]!)
    let rest = old.models.filter { $0.key != canvas.uuid.wireText }.map {
      SyncFragment(
        .add, uuid: UUID(wireText: $0.key)!, className: "Shape", properties: $0.value)
    }
    server.replaceSession([root] + rest)
    #expect(canvas.shapes.count == 301)
    answerAll()
    #expect(fate.handle.state == .accepted && fate.isConsistent && canvas.shapes.count == 301)
    expectEqual()
  }

  @Test("A set that the server has to take as a whole stays whole")
  func atomic() {
    scope.modifyAtomically(nil) { for _ in 0..<300 { canvas.shapes.append(Shape()) } }
    #expect(server.takeSyncs().map(\.fragments.count) == [301])
  }

  @Test("This server speaking version 1 has what the client shows, and so has another client")
  func ownServer() {
    var configuration = ServerEngine.Configuration()
    configuration.highestVersion = 1
    let world = InMemoryWorld(configuration: configuration)
    let clients = (0..<2).map { _ in world.addClient() }
    for client in clients { client.join() }
    world.settle()
    for number in 0..<250 {
      for client in clients {
        let new = Shape()
        new.x = Float(number)
        if number % 3 == 0 { new.parts.append(Shape()) }
        client.canvas.shapes.append(new)
      }
    }
    world.settle()
    #expect(world.canvas.shapes.count == 500)
    for client in clients { #expect(client.scope.canonicalJSON == world.scope.canonicalJSON) }
  }
}
