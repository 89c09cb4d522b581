#if os(Linux)
import Foundation
import Jetstream
import JetstreamServer
import JetstreamWebSocket

/// The role of this program in a process that the suite `fanout` has started.
enum FanoutRole {
  /// Our server with one scope.
  case canvas
  /// A redis server, which it starts.
  case redis
  case load(FanoutPlan, port: UInt16, server: Int32)

  /// The role that a command line names; nil if it names none.
  init?(_ arguments: [String]) {
    switch (arguments.first, arguments.count) {
    case ("--canvas", 1): self = .canvas
    case ("--redis", 1): self = .redis
    case ("--fanout", 7):
      guard let plan = FanoutPlan(arguments[1...4]), let port = UInt16(arguments[5]),
        let server = Int32(arguments[6])
      else { return nil }
      self = .load(plan, port: port, server: server)
    default: return nil
    }
  }

  /// Plays the role until its end, or that of the process's input.
  func play() {
    RoleLines.raiseDescriptorLimit()
    do {
      switch self {
      case .canvas:
        // Before there are other threads, which stay on the processor of the one that makes them.
        try Processors.pin(to: 0)
        let done = DispatchSemaphore(value: 0)
        Task {
          await FanoutServer().run()
          done.signal()
        }
        done.wait()
      case .redis:
        try Processors.pin(to: 0)
        try RedisServer.run()
      case .load(let plan, let port, let server):
        try Processors.pin(to: 1)
        RoleLines.say(try Self.figures(plan, port, server).line)
      }
    } catch {
      RoleLines.say("\(error)")
    }
  }

  private static func figures(
    _ plan: FanoutPlan, _ port: UInt16, _ server: Int32
  ) throws -> FanoutFigures {
    switch plan.peer {
    case .redis: try FanoutLoad(RedisWire(), plan, port: port, server: server).run()
    case .version1:
      try FanoutLoad(JetstreamWire(version: 1), plan, port: port, server: server).run()
    case .version2:
      try FanoutLoad(JetstreamWire(version: 2), plan, port: port, server: server).run()
    }
  }
}

/// The root of the scope that is watched.
final class Billboard: ModelObject {
  @Property var name = ""
}

/// The server, on an event loop.
private actor FanoutServer {
  private let loop = EventLoop.next()
  private var server: Server?

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  func run() async {
    let server = Server(configuration: .forOneAddress)
    self.server = server
    server.host(Scope(name: "Billboard", root: Billboard()))
    guard let port = try? await server.listen() else {
      return RoleLines.say("the server cannot listen")
    }
    RoleLines.say("\(port) \(getpid())")
    for await _ in RoleLines.commands() {}
  }
}

/// The peer: a redis server that keeps nothing on disk.
enum RedisServer {
  /// The path of the program; nil if it is not installed.
  static let path: String? = {
    let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
    return folders.map { "\($0)/redis-server" }.first(
      where: FileManager.default.isExecutableFile(atPath:))
  }()

  /// Starts the server, says its port and its process, and ends it together with the input of this process.
  static func run() throws {
    guard let path else { throw RoleProblem(text: "redis-server is not installed") }
    let port = try FanoutSocket.freePort()
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = [
      "--bind", "127.0.0.1", "--port", "\(port)", "--save", "", "--appendonly", "no",
    ]
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    try process.run()
    defer {
      process.terminate()
      process.waitUntilExit()
    }
    try waitForStart(of: process, port)
    RoleLines.say("\(port) \(process.processIdentifier)")
    while readLine() != nil {}
  }

  private static func waitForStart(of process: Process, _ port: UInt16) throws {
    for _ in 0..<500 where process.isRunning {
      if let socket = try? FanoutSocket.connect(to: port) {
        close(socket)
        return
      }
      Thread.sleep(forTimeInterval: 0.02)
    }
    throw RoleProblem(text: "redis-server does not listen")
  }
}
#endif
