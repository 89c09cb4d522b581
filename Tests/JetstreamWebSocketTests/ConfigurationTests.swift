import JetstreamWebSocket
import Testing

private func text(_ result: ExitTest.Result?) -> String {
  String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
}

@Suite("The configuration of a connection")
struct ConfigurationTests {
  @Test("A limit with which nothing would ever be read traps with a sentence")
  func inboundLimits() async {
    let bytes = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = WebSocketConfiguration(maximumInboundBytes: 0)
    }
    #expect(text(bytes).contains("A WebSocket connection must take at least 1 inbound byte."))
    let messages = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      var configuration = WebSocketConfiguration(maximumInboundBytes: 1, maximumInboundMessages: 1)
      configuration.maximumInboundMessages = -1
    }
    #expect(text(messages).contains("A WebSocket connection must take at least 1 inbound message."))
  }

  @Test("A negative time for closing traps with a sentence")
  func closeTimeout() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      var configuration = WebSocketConfiguration(closeTimeout: .zero)
      configuration.closeTimeout = .seconds(-1)
    }
    #expect(
      text(result).contains("The close timeout of a WebSocket connection must not be negative."))
  }
}
