import Foundation
import JetstreamWebSocket

/// A listener that sends back every message.
///
/// - `connections`: the number of open connections
/// - `sockets`: the number of sockets of the process
/// - `exhaust`: leaves no descriptor that could be opened; then, whenever a connection cannot be accepted, it says
///   `refused NANOSECONDS`, the time on a clock of its own
/// - `free`: lets descriptors be opened again
final class Listener {
  private let listener: WebSocketListener
  private var filling: [Int32] = []

  init(handshakeTimeout: Duration) async throws {
    // The kernel would make clients wait for a second when its queue is full.
    var configuration = WebSocketListener.Configuration(
      handshakeTimeout: handshakeTimeout, backlog: SOMAXCONN)
    let accept = configuration.acceptNext
    let start = ContinuousClock.now
    configuration.acceptNext = { listening in
      let result = accept(listening)
      if result == -EMFILE {
        let time = start.duration(to: .now) / .nanoseconds(1)
        SocketProcess.say("refused \(Int(time))")
      }
      return result
    }
    listener = try await .start(configuration: configuration) { connection, _ in
      while let message = try? await connection.receive() { try? connection.send(message) }
    }
  }

  var port: UInt16 { listener.port }

  func answer(to command: String) -> String {
    switch command {
    case "connections": return "\(listener.connectionCount)"
    case "sockets": return "\(Descriptors.socketCount)"
    case "exhaust":
      filling = Descriptors.exhaust()
      return "exhausted"
    case "free":
      for descriptor in filling { close(descriptor) }
      filling = []
      Descriptors.raiseLimit()
      return "freed"
    default: SocketProcess.fail("the listener does not know '\(command)'")
    }
  }
}
