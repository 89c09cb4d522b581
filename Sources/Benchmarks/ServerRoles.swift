import Foundation
import Jetstream
import JetstreamServer
import JetstreamWebSocket

/// The role of this program in a process that the suite `server` has started.
enum ServerRole {
  case host(scopes: Int, models: Int, folder: String?)
  case spread(scopes: Int, loops: Int)
  case load(Load, port: UInt16)
  case killer(kills: Int, writers: Int, folder: String)

  /// The role that a command line names; nil if it names none.
  init?(_ arguments: [String]) {
    let numbers = arguments.compactMap { Int($0) }
    switch (arguments.first, arguments.count) {
    case ("--host", 3) where numbers.count == 2:
      self = .host(scopes: numbers[0], models: numbers[1], folder: nil)
    case ("--host", 4) where numbers.count == 2:
      self = .host(scopes: numbers[0], models: numbers[1], folder: arguments[3])
    case ("--spread", 3) where numbers.count == 2:
      self = .spread(scopes: numbers[0], loops: numbers[1])
    case ("--killer", 4) where numbers.count == 2:
      self = .killer(kills: numbers[0], writers: numbers[1], folder: arguments[3])
    case ("--load", 5) where numbers.count == 3:
      guard let load = Load(arguments[1], numbers[0], numbers[1]) else { return nil }
      self = .load(load, port: UInt16(numbers[2]))
    default: return nil
    }
  }

  /// Plays the role until its end, or that of the process.
  func play() {
    RoleLines.raiseDescriptorLimit()
    if case .load(.reader, _) = self { RoleLines.lowerPriority() }
    let done = DispatchSemaphore(value: 0)
    Task {
      switch self {
      case .host(let scopes, let models, let folder): await Rooms().run(scopes, models, folder)
      case .spread(let scopes, let loops):
        do { try await SpreadRooms().run(scopes, loops) } catch { RoleLines.say("\(error)") }
      case .killer(let kills, let writers, let folder):
        do {
          RoleLines.say("\(try await Killer(folder: folder).run(kills, writers))")
        } catch {
          RoleLines.say("\(error)")
        }
      case .load(let load, let port):
        do { try await LoadMaker(port: port).run(load) } catch { RoleLines.say("\(error)") }
      }
      done.signal()
    }
    done.wait()
  }
}

extension Server.Configuration {
  /// A configuration for loads that all come from this machine.
  static var forOneAddress: Self {
    var result = Self()
    result.limits.handshakes = nil
    result.limits.handshakesPerAddress = nil
    result.limits.sessionsPerAddress = nil
    return result
  }
}

/// The server, on an event loop.
private actor Rooms {
  private let loop = EventLoop.next()
  private var server: Server?

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  func run(_ scopes: Int, _ models: Int, _ folder: String?) async {
    let server = Server(configuration: .forOneAddress)
    self.server = server
    for number in 0..<scopes {
      let canvas = Shape.canvas(of: number == 0 ? models : 256).0
      let scope = Scope(name: "Room \(number)", root: canvas)
      guard let folder else {
        server.host(scope)
        continue
      }
      do {
        try await server.host(scope, log: FragmentLog("\(folder)/\(number)"))
      } catch {
        return RoleLines.say("the log cannot be opened: \(error)")
      }
    }
    guard let port = try? await server.listen() else { return }
    RoleLines.say("\(port)")
    for await line in RoleLines.commands() where line == "memory" {
      ProcessMemory.trim()
      RoleLines.say("\(ProcessMemory.knownBytes)")
    }
  }
}

/// A server whose scopes are hosted from a schema and spread over event loops, or live on the one of its actor.
private actor SpreadRooms {
  private let loop = EventLoop.next()
  private var server: Server?

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  func run(_ scopes: Int, _ loops: Int) async throws {
    var configuration = Server.Configuration.forOneAddress
    configuration.scopeLoops = loops
    let server = Server(configuration: configuration)
    self.server = server
    for number in 0..<scopes {
      server.host("Room \(number)", schema: ScopeSchema(of: Canvas.self))
      try await fill("Room \(number)", of: server)
    }
    RoleLines.say("\(try await server.listen())")
    for await _ in RoleLines.commands() {}
  }

  /// Gives a scope 256 models, as a client.
  private func fill(_ name: String, of server: Server) async throws {
    let client = Client(transport: server.makeTransport())
    let scope = Scope(name: name, root: Canvas())
    try await client.connect()
    try await client.fetch(scope)
    (scope.root as? Canvas)?.shapes.append(contentsOf: (0..<256).map { _ in Shape() })
    try await client.sync(scope)
    client.close()
  }
}

/// The clients of the server.
private struct LoadMaker {
  let port: UInt16
  private static let clock = ContinuousClock()

  func run(_ load: Load) async throws {
    switch load {
    case .writers(let count, let scopes): try await write(count, scopes)
    case .eagerWriter: try await write(1, 1, inFlight: 64)
    case .idle(let count):
      try await hold { try await peers(count, joining: false) }
    case .halfOpen(let count):
      let crowd = HalfOpenCrowd(port)
      try await hold {
        try crowd.grow(by: count)
        // Accepted last, so that all of the crowd have been when it is there.
        return try await LoadPeer(port)
      }
      withExtendedLifetime(crowd) {}
    case .sessions(let count):
      try await hold { try await peers(count, joining: true) }
    case .stoppedReaders(let count): try await hold { try await stop(count) }
    case .returning(let count): try await comeBack(count)
    case .newcomers(let count): try await come(count)
    case .editor: try await edit()
    case .reader: try await read()
    case .restlessWriter: try await writeOn()
    }
  }

  /// Makes peers when it is told to, and holds them until the process ends.
  private func hold<Peers>(_ make: () async throws -> Peers) async throws {
    // The first connection makes what all share.
    let first = try await LoadPeer(port)
    RoleLines.say("ready")
    var commands = RoleLines.commands().makeAsyncIterator()
    _ = await commands.next()
    let peers = try await make()
    RoleLines.say("there")
    _ = await commands.next()
    withExtendedLifetime((first, peers)) {}
  }

  private func peers(_ count: Int, joining: Bool) async throws -> [LoadPeer] {
    var peers: [LoadPeer] = []
    for _ in 0..<count {
      let peer = try await LoadPeer(port)
      if joining { try await peer.join(0) }
      peers.append(peer)
    }
    return peers
  }

  private func write(_ count: Int, _ scopes: Int, inFlight: Int = 16) async throws {
    let port = port
    let begin = Self.clock.now + .seconds(2)
    let total = try await withThrowingTaskGroup(of: Int.self) { group in
      for number in 0..<count {
        group.addTask {
          let peer = try await LoadPeer(port)
          try await peer.join(number % scopes)
          var answered = 0
          while Self.clock.now < begin + .seconds(2) {
            while peer.inFlight < inFlight { try peer.edit(number) }
            let before = peer.inFlight
            try await peer.take()
            if Self.clock.now > begin { answered += before - peer.inFlight }
          }
          return answered
        }
      }
      return try await group.reduce(0, +)
    }
    RoleLines.say("\(Double(total) / 2)")
  }

  private func comeBack(_ count: Int) async throws {
    let peers = try await peers(count, joining: true)
    let writer = try await LoadPeer(port)
    try await writer.join(0)
    for peer in peers { peer.cut() }
    for number in 0..<100 { try writer.edit(number) }
    while writer.inFlight > 0 { try await writer.take() }
    let last = writer.sequence
    let start = Self.clock.now
    for peer in peers { try await peer.resume() }
    for peer in peers { while peer.sequence < last { try await peer.take() } }
    RoleLines.say("\(start.duration(to: Self.clock.now) / .milliseconds(1))")
  }

  /// Makes peers that read nothing more, and 100 changes of 1 MiB.
  private func stop(_ count: Int) async throws -> [LoadPeer] {
    let peers = try await peers(count, joining: true)
    let writer = try await LoadPeer(port)
    try await writer.join(0)
    for _ in 0..<100 {
      try writer.edit(noteBytes: 1 << 20)
      while writer.inFlight > 0 { try await writer.take() }
      try writer.acknowledge()
    }
    return peers
  }

  private func come(_ count: Int) async throws {
    let peers = try await peers(count, joining: false)
    let start = Self.clock.now
    try await withThrowingTaskGroup { group in
      for peer in Carrier.of(peers) { group.addTask { try await peer.value.join(0) } }
      try await group.waitForAll()
    }
    RoleLines.say("\(start.duration(to: Self.clock.now) / .milliseconds(1))")
  }

  private func writeOn() async throws {
    let peer = try await LoadPeer(port)
    try await peer.join(0)
    RoleLines.say("there")
    var number = 0
    while true {
      while peer.inFlight < 256 {
        try peer.edit(number)
        number += 1
      }
      try await peer.take()
    }
  }

  private func read() async throws {
    RoleLines.say("there")
    while true { try await LoadPeer(port).join(0) }
  }

  private func edit() async throws {
    let editor = try await LoadPeer(port)
    try await editor.join(1)
    var times: [Double] = []
    while times.count < 300 {
      let start = Self.clock.now
      try editor.edit(times.count)
      while editor.inFlight > 0 { try await editor.take() }
      times.append(start.duration(to: Self.clock.now) / .milliseconds(1))
      try await Task.sleep(until: start + .milliseconds(10))
    }
    RoleLines.say("\(times.sorted()[times.count * 99 / 100])")
  }

  /// Takes a peer to the one task that uses it from then on. Sound as unchecked for that reason.
  private struct Carrier: @unchecked Sendable {
    let value: LoadPeer

    static func of(_ peers: [LoadPeer]) -> [Carrier] { peers.map { Carrier(value: $0) } }
  }
}
