import Jetstream
import JetstreamServer

let syncSuite = Suite(name: "sync", summary: "client, server and client: speed, bytes and memory") {
  pendingRows() + editRows() + wireRows() + loopbackRows() + resumeRows() + uploadRows()
    + digestRows() + hostedRows() + crowdRows() + ruleRows() + largeSetRows()
}

/// The cost of an append on the wire, for collections of several sizes. No pings are counted: no time passes.
private func wireRows() -> [Row] {
  let bars: [(Int, Bar)] = [(10, 0.75), (1_000, 0.02), (100_000, 0.0002)]
  return bars.flatMap { count, bar in
    func row(_ way: String, _ bytes: @escaping (Appends) -> () -> Double) -> Row {
      Row(
        name: "append to \(count.grouped), \(way)", unit: "bytes",
        peerName: "protocol 1, the whole array", bar: bar, rounds: 5
      ) {
        Probes(
          ours: bytes(Appends(to: count, version: 2)), peer: bytes(Appends(to: count, version: 1)))
      }
    }
    return [
      row("sent by its client") { appends in { appends.measure { $0.sent } } },
      row("sent to another client") { appends in { appends.measure { $0.received } } },
    ]
  }
}

/// The time until a client that was away is up to date again, in one thread, with the frames encoded and decoded but
/// without sockets.
private func resumeRows() -> [Row] {
  func row(_ missed: Int, _ way: Absence.Way, bar: Bar) -> Row {
    Row(
      name: "catch up on \(missed.grouped) sets, \(way.rawValue)", unit: "ms",
      peerName: "fetching the scope anew", bar: bar, rounds: 5
    ) {
      let absence = Absence(of: missed, way)
      return Probes(ours: absence.measure, peer: absence.measureNewcomer)
    }
  }
  return [
    row(10, .session, bar: 0.1), row(1_000, .session, bar: 1), row(10, .sequence, bar: 0.1),
    row(1_000, .sequence, bar: 1), row(4_000, .sequence, bar: 3.5),
    // More than the server's stream keeps.
    row(100_000, .state, bar: 1),
  ]
}

/// The cost of an edit that was made without a connection, from the first attempt to connect until all edits are
/// decided. It should be the same for any number of pending edits.
private func uploadRows() -> [Row] {
  let bars: [(Int, Bar)] = [(100, 30), (1_000, 30), (9_000, 50), (36_000, 50)]
  return bars.map { count, bar in
    Row(name: "send a pending edit, of \(count.grouped)", unit: "us", bar: bar, rounds: 3) {
      let edits = PendingEdits(count)
      return Probes(ours: edits.measureUpload)
    }
  }
}

/// The cost of an edit while the client is online: captured, pending, sent, applied by the server and acknowledged, in one
/// thread and without sockets.
private func editRows() -> [Row] {
  [
    Row(name: "an edit until it is acknowledged, of 1,000", unit: "us", bar: 35, rounds: 9) {
      let edits = OnlineEdits()
      return Probes(ours: edits.measure)
    }
  ]
}

/// Memory per pending edit. Comes first, while no large piece of memory was freed.
private func pendingRows() -> [Row] {
  [
    Row(
      name: "memory of a pending edit, of 100,000", unit: "bytes",
      peerName: "the change sets alone", bar: .figure(600), rounds: 3
    ) {
      let edits = PendingEdits(100_000)
      return Probes(ours: edits.measure, peer: edits.measureSets)
    }
  ]
}

extension Int {
  /// The number with commas.
  var grouped: String {
    self < 1_000 ? "\(self)" : "\(self / 1_000),\(String(1_000 + self % 1_000).dropFirst())"
  }
}

/// Appends of one of two clients, and the bytes on the wire for them.
private final class Appends {
  private let world: SyncWorld
  private let author: SyncWorld.Peer
  private let reader: SyncWorld.Peer

  init(to count: Int, version: Int) {
    world = SyncWorld(shapes: count)
    author = world.addPeer(version: version)
    reader = world.addPeer(version: version)
  }

  /// Returns the bytes for one more append, which is undone again.
  func measure(_ bytes: ((sent: Int, received: Int)) -> Int) -> Double {
    guard world.settle() else { return Row.failed("the clients do not come to rest") }
    let before = (author.sent, reader.received)
    author.canvas.shapes.append(Shape())
    guard world.settle() else { return Row.failed("the append does not arrive") }
    let after = (author.sent, reader.received)
    let count = author.canvas.shapes.count
    guard reader.canvas.shapes.count == count else {
      return Row.failed("the other client has not got the append")
    }
    author.canvas.shapes.remove(at: count - 1)
    _ = world.settle()
    return Double(bytes((after.0 - before.0, after.1 - before.1)))
  }
}

/// A client that is away while the server changes the shapes, one in each change set.
private final class Absence {
  /// The way in which the client resumes.
  enum Way: String {
    case session = "same session"
    case sequence = "new session"
    /// The server no longer has the change sets that were missed.
    case state = "whole state"
  }

  private static let shapes = 1_000
  private let missed: Int
  private let way: Way
  private let world = SyncWorld(shapes: shapes)
  private let peer: SyncWorld.Peer
  private var level = 0

  init(of missed: Int, _ way: Way) {
    self.missed = missed
    self.way = way
    peer = world.addPeer()
    _ = world.settle()
  }

  /// Milliseconds from the first attempt to connect until the last change is there.
  func measure() -> Double {
    guard world.settle() else { return Row.failed("the client does not come to rest") }
    world.leave(peer)
    for step in 0..<missed {
      if step % Self.shapes == 0 { level += 1 }
      world.canvas.shapes[step % Self.shapes].level = level
      world.scope.flush()
    }
    if way != .session { world.expire() }
    let (states, sessions) = (peer.states, peer.sessions)
    var isThere = false
    let time = nanoseconds { isThere = world.comeBack(peer) }
    guard isThere, peer.scope.canonicalJSON == world.scope.canonicalJSON else {
      return Row.failed("the client does not catch up")
    }
    let actual: Way =
      peer.states > states ? .state : peer.sessions > sessions ? .sequence : .session
    guard actual == way else { return Row.failed("it went on by \(actual.rawValue)") }
    return time / 1e6
  }

  /// The same for a new client.
  func measureNewcomer() -> Double {
    let newcomer = world.addPeer()
    var isThere = false
    let time = nanoseconds { isThere = world.settle() }
    defer { world.remove(newcomer) }
    guard isThere, newcomer.states == 1 else { return Row.failed("the client gets no state") }
    return time / 1e6
  }
}

/// A client that edits while it is online.
private final class OnlineEdits {
  private static let shapes = 1_000
  private let world = SyncWorld(shapes: shapes)
  private let peer: SyncWorld.Peer
  private var level = 0

  init() {
    peer = world.addPeer()
    _ = world.settle()
  }

  /// Microseconds an edit, each a change set that is acknowledged before the next one is made.
  func measure() -> Double {
    guard world.settle() else { return Row.failed("the client does not come to rest") }
    level += 1
    var isThere = true
    let time = nanoseconds {
      for step in 0..<Self.shapes {
        peer.canvas.shapes[step].level = level
        isThere = isThere && world.settle()
      }
    }
    guard isThere, peer.scope.canonicalJSON == world.scope.canonicalJSON else {
      return Row.failed("the server does not get the edits")
    }
    return time / 1e3 / Double(Self.shapes)
  }
}

/// A client that edits without a connection.
private final class PendingEdits {
  private static let shapes = 1_000
  private let count: Int
  private var worlds: [SyncWorld] = []
  private var kept: [[ChangeSet]] = []

  init(_ count: Int) { self.count = count }

  /// Returns the bytes per edit, with everything that the client keeps to send it and to undo it.
  func measure() -> Double {
    guard let (world, peer) = away() else { return .nan }
    worlds.append(world)
    let before = ProcessMemory.knownBytes
    edit(peer.canvas, peer.scope)
    let after = ProcessMemory.knownBytes
    guard peer.pending == count else {
      return Row.failed("\(peer.pending) change sets are pending")
    }
    return Double(after - before) / Double(count)
  }

  /// Microseconds an edit, until the server has decided all of them.
  func measureUpload() -> Double {
    guard let (world, peer) = away() else { return .nan }
    edit(peer.canvas, peer.scope)
    var isThere = false
    let time = nanoseconds { isThere = world.comeBack(peer) }
    guard isThere, world.scope.canonicalJSON == peer.scope.canonicalJSON else {
      return Row.failed("the server does not get \(count) pending edits")
    }
    return time / 1e3 / Double(count)
  }

  /// A client whose connection is gone.
  private func away() -> (SyncWorld, SyncWorld.Peer)? {
    let world = SyncWorld(shapes: Self.shapes)
    let peer = world.addPeer()
    guard world.settle() else {
      _ = Row.failed("the client does not come to rest")
      return nil
    }
    world.leave(peer)
    return (world, peer)
  }

  private func edit(_ canvas: Canvas, _ scope: Scope) {
    for step in 0..<count {
      canvas.shapes[step % Self.shapes].level = step + 1
      scope.flush()
    }
  }

  /// Bytes a change set of the same content.
  func measureSets() -> Double {
    let scope = Scope(
      name: "Canvas", root: Shape.canvas(of: Self.shapes).0, ticker: .manual())
    guard let canvas = scope.root as? Canvas else { return Row.failed("there is no canvas") }
    scope.flush()
    var sets: [ChangeSet] = []
    sets.reserveCapacity(count)
    let token = scope.onChanges.listen { sets.append($0) }
    let before = ProcessMemory.knownBytes
    edit(canvas, scope)
    let after = ProcessMemory.knownBytes
    token.cancel()
    guard sets.count == count else { return Row.failed("\(sets.count) sets were made") }
    kept.append(sets)
    return Double(after - before) / Double(count)
  }
}
