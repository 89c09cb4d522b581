import Testing

@testable import JetstreamWebSocket

@Suite("A listener whose process has no descriptors left", .live, .timeLimit(.minutes(5)))
struct DescriptorTests {
  private func exchange(_ connection: WebSocketConnection, _ text: String) async throws {
    try connection.send(text: text)
    #expect(try await connection.receive()?.text == text)
  }

  private func connect(_ port: UInt16) async throws -> WebSocketConnection {
    try await WebSocketClient.connect(
      to: "ws://127.0.0.1:\(port)", configuration: .init(connectTimeout: .seconds(120)))
  }

  @Test(
    "It tries again now and then, serves the connections that it has, and accepts others later",
    arguments: [true, false])
  func runsOut(hasConnections: Bool) async throws {
    let (listener, port) = try await SocketRole.listener(handshakeTimeout: .seconds(120))
    let early = hasConnections ? try await connect(port) : nil
    if let early { try await exchange(early, "before") }

    #expect(try await listener.ask("exhaust") == "exhausted")
    async let late = connect(port)
    var refusals: [Int] = []
    while refusals.count < 4 {
      let words = try await listener.line().split(separator: " ")
      try #require(words.first == "refused")
      refusals.append(try #require(Int(words[1])))
      if let early { try await exchange(early, "\(refusals.count)") }
    }
    // A bound from below, so that no machine is too slow for it; a listener that spins tries within microseconds.
    let pause = Int(ListenerCore.pause / .nanoseconds(1))
    for (one, next) in zip(refusals, refusals.dropFirst()) { #expect(next - one >= pause / 2) }

    #expect(try await listener.ask("free") == "freed")
    let connection = try await late
    try await exchange(connection, "late")
    if let early { try await exchange(early, "after") }
    #expect(try await listener.ask("connections") == (hasConnections ? "2" : "1"))
  }
}
