import Testing

@testable import Jetstream

@Suite("The server's messages wait for a moment at which they can be applied")
struct IncomingGateTests {
  private let root = Node("root")
  private let scope: Scope

  init() { scope = manualScope(root) }

  @Test("Messages held back are not applied within other changes of the server, nor within modify")
  func opensLater() {
    var opened = 0
    let gate = IncomingGate.Listener(owner: root, onOpen: { opened += 1 }, onClose: {})
    scope.incoming.add(gate)
    scope.pauseIncoming()
    let token = root.observeChangeImmediately(\.number) { [scope] _, _ in
      scope.resumeIncoming()
      scope.flush()
      scope.ticker.advance(by: .seconds(1))
      #expect(opened == 0)
    }
    scope.apply([
      SyncFragment(.change, uuid: root.uuid, className: "Node", properties: ["number": 1])
    ])
    token.cancel()
    #expect(opened == 0)
    scope.advance()
    #expect(opened == 1)

    scope.pauseIncoming()
    scope.modify {
      root.number = 2
      scope.resumeIncoming()
      scope.ticker.advance(by: .seconds(1))
      #expect(opened == 1)
    }
    #expect(opened == 2)

    scope.pauseIncoming()
    #expect(throws: Oops.self) {
      try scope.modify {
        scope.resumeIncoming()
        scope.ticker.advance(by: .seconds(1))
        throw Oops()
      }
    }
    #expect(opened == 2)
    scope.advance()
    #expect(opened == 3 && scope.ticker.isIdle)
  }
}
