import Foundation
import Jetstream
import JetstreamServer
import JetstreamWebSocket

/// The role of this program in a process that a suite has started.
enum AttackRole {
  /// The server, with a number of models, and with a limit on its memory if it has little.
  case server(models: Int, hasLittleMemory: Bool)
  case attacker(Attack, port: UInt16)

  /// The role that a command line names; nil if it names none.
  init?(_ arguments: [String]) {
    switch (arguments.first, arguments.count) {
    case ("--serve", 3):
      guard let models = Int(arguments[1]) else { return nil }
      self = .server(models: models, hasLittleMemory: arguments[2] == "little")
    case ("--attack", 3):
      guard let attack = Attack(rawValue: arguments[1]), let port = UInt16(arguments[2]) else {
        return nil
      }
      self = .attacker(attack, port: port)
    default: return nil
    }
  }

  /// Plays the role until its end, or that of the process.
  func play() {
    RoleLines.raiseDescriptorLimit()
    // Before there are other threads, which have the priority of the one that makes them. Sessions that have gone away
    // take their time to be made.
    if case .attacker(let attack, _) = self, attack != .absent { RoleLines.lowerPriority() }
    let done = DispatchSemaphore(value: 0)
    Task {
      switch self {
      case .server(let models, let hasLittleMemory):
        await AttackedServer().run(models, hasLittleMemory)
      case .attacker(let attack, let port): await Attacker(port: port).run(attack)
      }
      done.signal()
    }
    done.wait()
  }
}

/// The server that is attacked.
private actor AttackedServer {
  private var server: Server?

  func run(_ count: Int, _ hasLittleMemory: Bool) async {
    var rules = ScopeRules()
    rules.update(\Shape.x, "Only the app moves shapes") { session, _, _ in session.principal != nil
    }
    if !hasLittleMemory { rules.create(Shape.self, "Only the app makes shapes") { _, _ in false } }
    rules.delete(Shape.self, "Shapes stay") { _, _ in false }
    var configuration = Server.Configuration()
    configuration.rules = { [rules] _ in rules }
    let scope = Scope(name: "Canvas", root: Shape.canvas(of: count).0)
    if hasLittleMemory {
      configuration.limits.residentBytes = ProcessMemory.knownBytes + Attack.spareMemory
    }
    let server = Server(configuration: configuration)
    self.server = server
    server.host(scope)
    guard let port = try? await server.listen() else { return }
    RoleLines.say("\(port)")
    for await line in RoleLines.commands() {
      switch line {
      case "peak": RoleLines.say("\(ProcessMemory.peakBytes >> 20)")
      case "bounded":
        // Clients add more between two looks, on top of the limit.
        let most = configuration.limits.residentBytes.map { $0 + Attack.spareMemory }
        let isBelow = most.map { ProcessMemory.peakBytes < $0 } ?? false
        let isRefused = server.limitHits["residentBytes", default: 0] > 0
        RoleLines.say(isRefused && isBelow ? "yes" : "no")
      default: break
      }
    }
  }
}

/// The client that goes on editing.
actor AttackedEditor {
  private let canvas = Canvas()
  private var scope: Scope?
  private var client: Client?

  func join(_ port: UInt16) async throws {
    let client = Client(url: "ws://127.0.0.1:\(port)")
    let scope = Scope(name: "Canvas", root: canvas)
    (self.client, self.scope) = (client, scope)
    try await client.connect()
    try await client.fetch(scope)
  }

  /// Edits every 20 milliseconds; gives the milliseconds that each edit took.
  func edit(_ count: Int) async throws -> [Double] {
    guard let client, let scope else { return [] }
    let clock = ContinuousClock()
    var times: [Double] = []
    for number in 0..<count {
      let start = clock.now
      canvas.shapes[number].level += 1
      scope.flush()
      try await client.waitForUpload(of: scope)
      times.append(start.duration(to: clock.now) / .milliseconds(1))
      try await Task.sleep(until: start + .milliseconds(20))
    }
    client.close()
    return times
  }
}

/// A peer that means harm, until its process is ended.
private struct Attacker {
  let port: UInt16

  func run(_ attack: Attack) async {
    if attack == .absent {
      for number in 0..<5_000 {
        guard let peer = try? await joined(2 - number % 2) else { continue }
        peer.abort()
      }
    }
    let crowd = HalfOpenCrowd(port)
    if attack == .halfOpen { try? crowd.grow(by: Attack.halfOpenCount) }
    print("ready")
    fflush(nil)
    while true {
      // A peer that was refused or dropped begins again.
      do { try await round(attack, crowd) } catch { try? await Task.sleep(for: .milliseconds(1)) }
    }
  }

  private func round(_ attack: Attack, _ crowd: HalfOpenCrowd) async throws {
    switch attack {
    case .fetches:
      let peer = try await session(1)
      try peer.send(text: "[" + (1...1000).map(Self.fetch).joined(separator: ",") + "]")
      try await drain(peer, 1000)
    case .fetchFrames:
      let peer = try await session(1)
      for index in 1...1000 { try peer.send(text: Self.fetch(index)) }
      try await drain(peer, 1000)
    case .largeFrames:
      try await withThrowingTaskGroup { group in
        let text = #"{"a":["# + String(repeating: "{},", count: 14 << 20 / 3) + "{}]}"
        let bytes = Array(text.utf8)
        for _ in 0..<10 {
          group.addTask {
            let peer = try await WebSocketClient.connect(to: "ws://127.0.0.1:\(port)")
            try peer.send(text: bytes)
            while try await peer.receive() != nil {}
          }
        }
        try await group.waitForAll()
      }
    case .resends:
      let peer = try await joined(2)
      let request = #"{"type":"Ping","index":0,"ack":0,"resendMissing":true}"#
      let frame = "[" + repeatElement(request, count: 20_000).joined(separator: ",") + "]"
      for _ in 0..<100 {
        try peer.send(text: frame)
        try await Task.sleep(for: .milliseconds(50))
      }
      peer.abort()
    case .differences:
      let peer = try await joined(2)
      let parts = String(repeating: "0", count: 4096)
      let difference = #"{"scopeIndex":0,"parts":"\#(parts)"}"#
      let ping =
        #"{"type":"Ping","index":0,"ack":0,"differences":["# + difference + "]}"
      let frame = "[" + repeatElement(ping, count: 1000).joined(separator: ",") + "]"
      for _ in 0..<100 {
        try peer.send(text: frame)
        try await Task.sleep(for: .milliseconds(50))
      }
      peer.abort()
    case .absent: try await Task.sleep(for: .seconds(1))
    case .denied:
      let (peer, _, shapes) = try await reading()
      let sets = (2...1001).map { index in
        Self.set(
          index,
          [SyncFragment(.change, uuid: shapes[index], className: "Shape", properties: ["x": 1])])
      }
      for _ in 0..<20 {
        try peer.send(text: "[" + sets.joined(separator: ",") + "]")
        try await Task.sleep(for: .milliseconds(50))
      }
      peer.abort()
    case .deniedDeletions:
      let (peer, canvas, shapes) = try await reading()
      let removal = SyncFragment(
        .change, uuid: canvas, className: "Canvas", properties: [:],
        operations: ["shapes": shapes.map { .remove($0) }])
      try peer.send(text: Self.set(2, [removal]))
      try await drain(peer, 2)
    case .deniedAdditions:
      let (peer, canvas, _) = try await reading()
      try peer.send(text: Self.set(2, Self.additions(of: 20_000, to: canvas)))
      try await drain(peer, 2)
    case .additions:
      let (peer, canvas, _) = try await reading()
      for index in 2... {
        try peer.send(text: Self.set(index, Self.additions(of: 500, to: canvas)))
        try await acknowledge(index, of: peer)
      }
    case .sessions: try await session(2).abort()
    case .halfOpen: try crowd.renew()
    }
  }

  private static func fetch(_ index: Int) -> String {
    #"{"type":"ScopeFetch","index":\#(index),"name":"Canvas"}"#
  }

  private func session(_ version: Int) async throws -> WebSocketConnection {
    let peer = try await WebSocketClient.connect(to: "ws://127.0.0.1:\(port)")
    try peer.send(
      text: #"{"type":"SessionCreate","index":0,"version":"0.2.0","protocol":\#(version)}"#)
    _ = try await peer.receive()
    return peer
  }

  /// A peer with a session that has asked for the scope.
  private func joined(_ version: Int) async throws -> WebSocketConnection {
    let peer = try await session(version)
    try peer.send(text: Self.fetch(1))
    _ = try await peer.receive()
    return peer
  }

  /// Returns a peer that has begun to read the scope, with the root and its shapes.
  private func reading() async throws -> (WebSocketConnection, canvas: UUID, shapes: [UUID]) {
    let peer = try await session(2)
    try peer.send(text: Self.fetch(1))
    while let message = try await peer.receive() {
      guard case .success(let messages) = Message.frame(message.bytes) else { continue }
      for case .success(.scopeState(let state)) in messages {
        guard let root = state.fragments.first, case .array(let shapes)? = root.properties["shapes"]
        else { continue }
        let uuids = shapes.compactMap { shape -> UUID? in
          if case .string(let text) = shape { UUID(uuidString: text) } else { nil }
        }
        return (peer, root.uuid, uuids)
      }
    }
    throw RoleProblem(text: "the scope has no state")
  }

  /// Returns the fragments that add so many shapes.
  private static func additions(of count: Int, to canvas: UUID) -> [SyncFragment] {
    let added = (0..<count).map { _ in UUID() }
    let insertion = SyncFragment(
      .change, uuid: canvas, className: "Canvas", properties: [:],
      operations: ["shapes": added.map { .insert($0, .end) }])
    return [insertion]
      + added.map { SyncFragment(.add, uuid: $0, className: "Shape", properties: ["level": 1]) }
  }

  /// Returns the message with a change set.
  private static func set(_ index: Int, _ fragments: [SyncFragment]) -> String {
    let texts = fragments.map { "\($0.json)" }.joined(separator: ",")
    return #"{"type":"ScopeSync","index":\#(index),"scopeIndex":0,"fragments":[\#(texts)]}"#
  }

  /// Reads until the reply to a change set, and acknowledges it, without which the server would answer no more of them.
  private func acknowledge(_ index: Int, of peer: WebSocketConnection) async throws {
    while let message = try await peer.receive() {
      guard case .success(let messages) = Message.frame(message.bytes) else { continue }
      for case .success(.scopeSyncReply(let reply)) in messages where reply.replyTo == index {
        var ping = Ping(ack: reply.index)
        if let sequence = reply.sequence {
          ping.seen = [Ping.Place(scopeIndex: 0, sequence: sequence)]
        }
        return try peer.send(text: Message.encodeFrame([.ping(ping)], asArray: false))
      }
    }
    throw RoleProblem(text: "the session has ended")
  }

  /// Reads until the last of so many replies, or to the end, and leaves.
  private func drain(_ peer: WebSocketConnection, _ count: Int) async throws {
    let last = Array(#""replyTo":\#(count)"#.utf8)
    while let message = try await peer.receive() {
      if message.bytes.suffix(200).contains(last) || message.bytes.prefix(1 << 17).contains(last) {
        break
      }
    }
    peer.abort()
  }
}
