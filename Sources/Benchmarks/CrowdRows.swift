import Foundation
import Jetstream
import JetstreamServer

/// The time that a server takes for each of many clients that fetch a scope one after the other while nothing changes: from
/// the frame with the fetch to the frames with the whole state. Without sockets.
func crowdRows() -> [Row] {
  [
    Row(
      name: "the state of 10,000 models for each of 100 clients", unit: "us",
      peerName: "encoding it for each", bar: 0.1, rounds: 5
    ) {
      let crowd = Crowd()
      return Probes(ours: crowd.measure, peer: crowd.measureEncoding)
    }
  ]
}

private final class Crowd {
  private static let clients = 100
  private let scope: Scope
  private var server: ServerEngine!
  private var lastConnection = 0
  private var sentBytes = 0

  init() {
    let (canvas, _) = Shape.canvas(of: 10_000)
    scope = Scope(name: "Canvas", root: canvas, ticker: .manual())
    scope.flush()
    server = ServerEngine(hooks: .offering(scope)) { [unowned self] action in
      switch action {
      case .send(let connections, let frame): sentBytes += frame.count * connections.count
      case .encode(let scope, let fragments):
        server.encoded(FragmentsText(fragments), of: scope, now: .zero)
      case .judge: server.judge(now: .zero)
      case .admit, .close, .probe, .join, .scope: break
      }
    }
    server.host(scope)
  }

  /// Returns the microseconds for one client.
  func measure() -> Double {
    let first = lastConnection + 1
    lastConnection += Self.clients
    for id in first...lastConnection {
      server.opened(id, params: [:], now: .zero)
      take(
        #"{"type":"SessionCreate","index":0,"version":"0.2.0","protocol":2,"params":{}}"#, on: id)
    }
    sentBytes = 0
    let start = ContinuousClock.now
    for id in first...lastConnection {
      take(#"{"type":"ScopeFetch","index":1,"name":"Canvas","params":{}}"#, on: id)
    }
    let time = start.duration(to: .now)
    precondition(sentBytes > Self.clients * 1_000_000, "Only \(sentBytes) bytes were sent.")
    for id in first...lastConnection { server.closed(id, now: .zero) }
    server.advance(to: .seconds(700))
    return time / .microseconds(1) / Double(Self.clients)
  }

  private func take(_ text: String, on id: Int) {
    let bytes = Array(text.utf8)
    server.received(
      [.frame(.init(messages: Message.frame(bytes), isArray: false, size: bytes.count))], on: id,
      now: .zero)
  }

  /// Returns the microseconds for making and encoding the state once.
  func measureEncoding() -> Double {
    let start = ContinuousClock.now
    var bytes: [UInt8] = []
    for fragment in scope.fullState() { fragment.write(to: &bytes) }
    let time = start.duration(to: .now)
    precondition(bytes.count > 1_000_000, "The state is too small.")
    return time / .microseconds(1)
  }
}
