import JetstreamWebSocket

@testable import Jetstream
@testable import JetstreamServer

// The main actor may be held up for longer than a handshake takes. A client then comes again; raw peers do not, and tests
// that count attempts want one.

extension Server.Configuration {
  /// This with two minutes for handshakes, unless the test has set that time.
  var patient: Self {
    var result = self
    if handshakeTimeout == Self().handshakeTimeout { result.handshakeTimeout = .seconds(120) }
    return result
  }
}

extension WebSocketListener.Configuration {
  /// One with two minutes for handshakes.
  static var patient: Self { .init(handshakeTimeout: .seconds(120)) }
}

extension WebSocketClient.Configuration {
  /// One with two minutes for connecting.
  static var patient: Self { .init(connectTimeout: .seconds(120)) }
}

extension Client {
  /// This with two minutes for handshakes and for silence.
  var patient: Client {
    engine.configuration.handshakeTimeout = .seconds(120)
    engine.configuration.silenceLimit = .seconds(120)
    return self
  }
}
