import Jetstream
import JetstreamServer
import Testing

/// An old client sends whole collections, and acknowledges every ten seconds only.
@Suite("Removals by old clients")
struct OldClientRemovalTests {
  private let world = InMemoryWorld()

  private func names(_ shapes: some Sequence<Shape>) -> [String] { shapes.map(\.label) }

  private func shape(_ label: String) -> Shape {
    let shape = Shape()
    shape.label = label
    return shape
  }

  @Test("One right after the element has come counts")
  func removal() {
    let (client, old) = (world.addClient(), OldClient(world))
    client.join()
    client.canvas.shapes.append(shape("a"))
    world.settle()
    client.canvas.shapes.append(shape("b"))
    world.exchange()
    #expect(names(old.canvas.shapes) == ["a", "b"])
    old.canvas.shapes.remove(at: 1)
    world.exchange()
    for canvas in [world.canvas, client.canvas, old.canvas] {
      #expect(names(canvas.shapes) == ["a"])
    }
  }

  @Test("Without pongs it waits for the next acknowledgement, and is undone before")
  func noPongs() {
    world.answersProbes = false
    let (client, old) = (world.addClient(), OldClient(world))
    client.join()
    world.settle()
    client.canvas.shapes.append(shape("a"))
    world.exchange()
    old.canvas.shapes.removeAll()
    world.exchange()
    for canvas in [world.canvas, client.canvas, old.canvas] {
      #expect(names(canvas.shapes) == ["a"])
    }
    old.ping()
    world.exchange()
    old.canvas.shapes.removeAll()
    world.exchange()
    for canvas in [world.canvas, client.canvas, old.canvas] { #expect(names(canvas.shapes) == []) }
  }

  /// An old client spoken by hand, to which an element has come that its script may not have handled.
  private func told() -> (peer: RawPeer, mine: Shape) {
    let mine = shape("mine")
    world.canvas.shapes = [mine]
    world.exchange()
    let peer = RawPeer.joined(world)
    world.canvas.shapes.append(shape("new"))
    world.exchange()
    return (peer, mine)
  }

  private func submit(_ peer: RawPeer, _ shapes: [Shape], adding new: Shape? = nil) {
    let addition = new.map {
      SyncFragment(
        .add, uuid: $0.uuid, className: "Shape", properties: ["label": .string($0.label)])
    }
    let uuids = (shapes + [new].compactMap(\.self)).map { JSONValue.string($0.uuid.wireText) }
    let change = SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["shapes": .array(uuids)])
    peer.submit([addition, change].compactMap(\.self))
  }

  @Test("An edit that the script may have made before it handled the element does not remove it")
  func early() {
    let (peer, mine) = told()
    submit(peer, [mine], adding: shape("more"))
    #expect(Set(names(world.canvas.shapes)) == ["mine", "new", "more"])
  }

  @Test("One that comes later does")
  func late() {
    let (peer, mine) = told()
    world.advance(by: .seconds(2))
    submit(peer, [mine], adding: shape("more"))
    #expect(names(world.canvas.shapes) == ["mine", "more"])
  }

  @Test("One probe is under way at a time, and only behind insertions")
  func count() {
    world.answersProbes = false
    let (peer, mine) = told()
    #expect(world.probes == [peer.link.id])
    world.canvas.shapes.append(shape("next"))
    world.exchange()
    #expect(world.probes.count == 1)
    world.server.received([.probed], on: peer.link.id, now: world.now)
    #expect(world.probes.count == 2)
    world.server.received([.probed], on: peer.link.id, now: world.now)
    mine.x = 7
    world.exchange()
    #expect(world.probes.count == 2)
  }

  @Test("Clients that say what they have seen are not probed")
  func others() {
    var configuration = ClientEngine.Configuration()
    configuration.highestVersion = 1
    world.addClient(configuration: configuration).join()
    world.addClient().join()
    world.settle()
    world.canvas.shapes.append(shape("a"))
    world.settle()
    #expect(world.probes.isEmpty && world.clients[0].canvas.shapes.count == 1)
  }

  @Test("After a lost connection nothing is probed before the client has acknowledged")
  func resumed() {
    let (client, old) = (world.addClient(), OldClient(world))
    client.join()
    world.settle()
    world.cut(world.links.first { $0.peer === old }!)
    world.exchange()
    let count = world.probes.count
    client.canvas.shapes.append(shape("a"))
    world.exchange()
    #expect(old.canvas.shapes.count == 1 && world.probes.count == count)
    old.ping()
    world.exchange()
    client.canvas.shapes.append(shape("b"))
    world.exchange()
    #expect(world.probes.count == count + 1)
  }
}
