import Testing

@testable import JetstreamWebSocket

@Suite struct MachineTests {
  private var server = WebSocketMachine(role: .server)
  private var client = WebSocketMachine(role: .client, randomness: SeededGenerator(seed: 7))

  private func wire(_ actions: [WebSocketMachine.Action]) -> [UInt8] {
    actions.flatMap { action in
      if case .send(let frame) = action { frame.bytes } else { [] as [UInt8] }
    }
  }

  private func rest(_ actions: [WebSocketMachine.Action]) -> [WebSocketMachine.Action] {
    actions.filter { if case .send = $0 { false } else { true } }
  }

  @Test mutating func messagesAreDeliveredAndPingsAnswered() {
    let sent = client.frame(for: .text("hi"))!.bytes
    #expect(server.receive(sent[...]) == [.deliver(.text("hi"))])
    let answer = client.receive([0x89, 2, 7, 8])
    #expect(decode(wire(answer), as: .server).events == [.pong([7, 8])])
    #expect(client.receive([0x8A, 0]).isEmpty)
  }

  @Test mutating func aProbeIsAnsweredOnceAndOneIsUnderWayAtATime() {
    let ping = server.probe()!.bytes
    #expect(server.probe() == nil)
    let answer = wire(client.receive(ping[...]))
    #expect(server.receive(answer[...]) == [.deliver(.pong)])
    #expect(server.receive(answer[...]).isEmpty)
    let next = server.probe()!.bytes
    #expect(server.receive(answer[...]).isEmpty)
    let nextAnswer = wire(client.receive(next[...]))
    #expect(server.receive(nextAnswer[...]) == [.deliver(.pong)])
    _ = server.close(WebSocketCloseStatus(code: .normal))
    #expect(server.probe() == nil)
  }

  @Test mutating func theClientCloses() {
    let status = WebSocketCloseStatus(code: 4096, reason: "{}")
    let begun = client.close(status)
    #expect(rest(begun) == [.armCloseTimer])
    #expect(client.frame(for: .text("late")) == nil)
    #expect(client.close(status).isEmpty)

    let seen = WebSocketCloseStatus(code: 4096, reason: "{}", byPeer: true)
    let answered = server.receive(wire(begun)[...])
    #expect(rest(answered) == [.end(.closed(seen)), .armCloseTimer, .finishWriting])
    #expect(server.frame(for: .text("late")) == nil)

    #expect(client.receive(wire(answered)[...]) == [.end(.closed(status))])
    #expect(client.transportEnded() == [.drop])
    #expect(server.transportEnded() == [.drop])
    #expect(server.transportEnded().isEmpty)
  }

  @Test mutating func theServerCloses() {
    let status = WebSocketCloseStatus(code: 4097, reason: "{}")
    let begun = server.close(status)
    let answered = client.receive(wire(begun)[...])
    let seen = WebSocketCloseStatus(code: 4097, reason: "{}", byPeer: true)
    #expect(rest(answered) == [.end(.closed(seen)), .armCloseTimer])
    #expect(server.receive(wire(answered)[...]) == [.end(.closed(status)), .finishWriting])
    #expect(server.timerFired() == [.abort])
  }

  @Test mutating func bothCloseAtOnce() {
    let one = WebSocketCloseStatus(code: 1000)
    let other = WebSocketCloseStatus(code: 1001)
    let fromClient = wire(client.close(one))
    let fromServer = wire(server.close(other))
    #expect(server.receive(fromClient[...]) == [.end(.closed(other)), .finishWriting])
    #expect(client.receive(fromServer[...]) == [.end(.closed(one))])
  }

  @Test mutating func aCloseWithoutCodeIsAnsweredWithoutCode() {
    let actions = client.receive([0x88, 0])
    #expect(decode(wire(actions), as: .server).events == [.close(nil)])
    #expect(
      rest(actions).first == .end(.closed(WebSocketCloseStatus(code: .noStatus, byPeer: true))))
  }

  @Test mutating func aPeerThatNeverAnswersTheCloseIsDropped() {
    _ = client.close(WebSocketCloseStatus(code: 1000))
    let lost = WebSocketCloseStatus(code: .abnormal)
    #expect(client.timerFired() == [.end(.failed(.connectionLost, lost)), .abort])
    #expect(client.timerFired().isEmpty)
    #expect(client.receive([0x88, 0]).isEmpty)
  }

  @Test("The end of the peer gives a close that has begun no more time")
  mutating func closeTimerAfterTheEnd() {
    _ = client.close(WebSocketCloseStatus(code: 1000))
    #expect(client.transportEnded().last == .drop)
    #expect(client.timerFired() == [.abort])
    #expect(client.timerFired().isEmpty)

    _ = server.receive([0xFF])
    #expect(server.transportEnded() == [.drop])
    #expect(server.timerFired() == [.abort])
    #expect(server.timerFired().isEmpty)
  }

  @Test mutating func messagesAfterOurCloseAreDiscarded() {
    _ = client.close(WebSocketCloseStatus(code: 1000))
    #expect(client.receive([0x81, 1, 0x61, 0x89, 0]).isEmpty)
  }

  @Test(arguments: BadBytes.all)
  mutating func violationsAreAnsweredWithTheirCode(bad: BadBytes) {
    var machine = WebSocketMachine(role: bad.role)
    let actions = machine.receive(bad.bytes[...])
    let status = WebSocketCloseStatus(code: bad.code)
    #expect(
      rest(actions) == [
        .armCloseTimer, .end(.failed(.protocolViolation(bad.violation), status)), .finishWriting,
      ])
    let peer: WebSocketRole = bad.role == .client ? .server : .client
    let seen = WebSocketCloseStatus(code: bad.code, byPeer: true)
    #expect(decode(wire(actions), as: peer).events == [.close(seen)])
    #expect(machine.receive([0x81, 1, 0x61]).isEmpty)
    #expect(machine.transportEnded() == [.drop])
  }

  @Test mutating func aViolationAfterOurCloseSendsNoSecondClose() {
    _ = client.close(WebSocketCloseStatus(code: 1000))
    let actions = client.receive([0xFF])
    #expect(wire(actions).isEmpty)
    #expect(actions.last == .finishWriting)
  }

  @Test mutating func anEndWithoutCloseIsALoss() {
    let lost = WebSocketMachine.Action.end(
      .failed(.connectionLost, WebSocketCloseStatus(code: .abnormal)))
    #expect(client.transportEnded() == [lost, .drop])
    #expect(server.abort() == [lost, .abort])
    #expect(server.abort().isEmpty)
    #expect(server.close(WebSocketCloseStatus(code: 1000)).isEmpty)
  }
}
