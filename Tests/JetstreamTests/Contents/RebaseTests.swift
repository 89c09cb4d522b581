import Foundation
import Testing

@testable import Jetstream

/// Operations that two clients make at the same time: the server puts them into one order and writes each with the place
/// that it has got; a client shows its pending ones on top of what the server has confirmed.
@Suite("Operations that are pending while others come in", .paced)
struct RebaseTests {
  /// The operations of one change set. A set that is rejected has no effect, wherever it stands; in an atomic one, an
  /// operation without effect rejects all.
  private struct Set {
    var operations: [PropertyOperation]
    var isAtomic = false
    var isRejected = false
  }

  private struct Client {
    var confirmed: CollectionContent
    var pending: [Set]

    var visible: CollectionContent {
      confirmed.after(pending.flatMap(\.operations))
    }
  }

  private struct Input {
    var content: CollectionContent
    var mine: [Set]
    var theirs: [Set]
    /// True where the next set of the order is one of `mine`.
    var order: [Bool]

    var smaller: [Input] {
      func input(
        _ content: CollectionContent? = nil, mine: [Set]? = nil, theirs: [Set]? = nil
      ) -> Input {
        Input(
          content: content ?? self.content, mine: mine ?? self.mine, theirs: theirs ?? self.theirs,
          order: order)
      }
      return withoutOne(mine).map { input(mine: $0) }
        + withoutOne(theirs).map { input(theirs: $0) }
        + withoutOne(content.elements).map { input(CollectionContent($0)) }
    }
  }

  /// Runs the server and both clients. Returns an explanation if they differ in the end, or on the way.
  private func problem(with input: Input) -> String? {
    var server = input.content
    var clients = [input.mine, input.theirs].map { Client(confirmed: input.content, pending: $0) }
    var order = input.order
    while clients.contains(where: { !$0.pending.isEmpty }) {
      let wanted = order.isEmpty || order.removeFirst() ? 0 : 1
      let author = clients[wanted].pending.isEmpty ? 1 - wanted : wanted
      let set = clients[author].pending.removeFirst()
      // The server judges, applies and rewrites.
      var now = server
      var stream: [PropertyOperation] = []
      var isRejected = set.isRejected
      for operation in set.operations {
        guard let anchored = now.anchored(operation) else {
          isRejected = isRejected || set.isAtomic
          continue
        }
        now.apply(operation)
        stream.append(anchored)
      }
      if isRejected { (now, stream) = (server, []) }
      // The way back is known before anything is told.
      let back = now.operations(to: server)
      if now.after(back) != server { return "\(stream) cannot be taken back" }
      server = now
      for at in clients.indices {
        clients[at].confirmed.apply(stream)
        if clients[at].confirmed != server { return "client \(at) has another confirmed content" }
      }
    }
    for (at, client) in clients.enumerated() where client.visible != server {
      return "client \(at) shows another content than the server has"
    }
    return nil
  }

  private func check(_ input: Input, _ note: String) {
    guard problem(with: input) != nil else { return }
    let least = minimal(input, smaller: \.smaller, fails: { problem(with: $0) != nil })
    Issue.record("\(note)\(problem(with: least) ?? ""): \(least)")
  }

  @Test("one against one, and two against one, for all small collections", arguments: [0, 1, 2, 3])
  func exhaustive(kind: Int) {
    let cases = CollectionCases(3)
    let operations = cases.operations(anchors: 1)
    let (isAtomic, isRejected) = (kind & 1 != 0, kind & 2 != 0)
    for content in cases.all(upTo: 3) {
      for mine in operations {
        for theirs in operations {
          let mine = Set(operations: [mine], isAtomic: isAtomic)
          let theirs = Set(operations: [theirs], isRejected: isRejected)
          check(Input(content: content, mine: [mine], theirs: [theirs], order: [true]), "")
          check(
            Input(
              content: content, mine: [mine, Set(operations: theirs.operations)],
              theirs: [theirs], order: [false, true]), "")
        }
      }
    }
  }

  @Test("up to three against three, in every order, some atomic, some rejected", arguments: 1...40)
  func random(seed: Int) {
    let cases = CollectionCases(6)
    var generator = SeededGenerator(seed: UInt64(seed))
    func sets() -> [Set] {
      (0..<Int.random(in: 0...3, using: &generator)).map { _ in
        Set(
          operations: (0..<Int.random(in: 1...3, using: &generator)).map { _ in
            cases.operation(&generator)
          }, isAtomic: .random(using: &generator),
          isRejected: Int.random(in: 0..<4, using: &generator) == 0)
      }
    }
    for _ in 0..<200 {
      let input = Input(
        content: cases.content(&generator), mine: sets(), theirs: sets(),
        order: (0..<6).map { _ in .random(using: &generator) })
      check(input, "seed \(seed): ")
    }
  }
}
