@testable import Jetstream

/// A content that replicas change at the same time, each by operations of its own.
protocol SharedContent: Sendable, Hashable {
  associatedtype Operation: Sendable, Hashable
  mutating func apply(_ operation: Operation)
  /// Returns the operation as the server sends it, which has the same result wherever the content is the same; nil if it
  /// has no effect.
  func anchored(_ operation: Operation) -> Operation?
  /// Returns operations that lead to another content.
  func way(to new: Self) -> [Operation]
  /// Contents that are a little smaller.
  var smaller: [Self] { get }
}

extension CollectionContent: SharedContent {
  func way(to new: CollectionContent) -> [PropertyOperation] { operations(to: new) }

  var smaller: [CollectionContent] { withoutOne(elements).map { CollectionContent($0) } }
}

extension CounterContent: SharedContent {
  func anchored(_ operation: PropertyOperation) -> PropertyOperation? {
    var after = self
    after.apply(operation)
    return after == self ? nil : operation
  }

  func way(to new: CounterContent) -> [PropertyOperation] { operations(to: new) }

  var smaller: [CounterContent] {
    number == 0 ? [] : CounterContent(.integer(0), within: range).map { [$0] } ?? []
  }
}

extension DictionaryContent: SharedContent {
  func anchored(_ edit: DictionaryEdit) -> DictionaryEdit? {
    let rest = self.edit(to: after(edit))
    return rest.isEmpty ? nil : rest
  }

  func way(to new: DictionaryContent) -> [DictionaryEdit] { [edit(to: new)] }
}

/// Change sets that two clients make at the same time: the server puts them into one order and writes each operation with
/// the place that it has got; a client shows its pending ones on top of what the server has confirmed.
struct RebaseCase<Content: SharedContent>: Sendable {
  /// The operations of one change set. A set that is rejected has no effect, wherever it stands; in an atomic one, an
  /// operation without effect rejects all.
  struct ChangeSet: Sendable {
    var operations: [Content.Operation]
    var isAtomic = false
    var isRejected = false
  }

  private struct Client {
    var confirmed: Content
    var pending: [ChangeSet]

    var visible: Content {
      var result = confirmed
      for set in pending { for operation in set.operations { result.apply(operation) } }
      return result
    }
  }

  var content: Content
  var mine: [ChangeSet]
  var theirs: [ChangeSet]
  /// True where the next set of the order is one of `mine`.
  var order: [Bool]

  private var smaller: [RebaseCase] {
    func less(
      _ content: Content? = nil, mine: [ChangeSet]? = nil, theirs: [ChangeSet]? = nil
    ) -> RebaseCase {
      RebaseCase(
        content: content ?? self.content, mine: mine ?? self.mine, theirs: theirs ?? self.theirs,
        order: order)
    }
    return withoutOne(mine).map { less(mine: $0) } + withoutOne(theirs).map { less(theirs: $0) }
      + withoutOneOperation(mine).map { less(mine: $0) }
      + withoutOneOperation(theirs).map { less(theirs: $0) } + content.smaller.map { less($0) }
  }

  private func withoutOneOperation(_ sets: [ChangeSet]) -> [[ChangeSet]] {
    sets.indices.flatMap { at in
      withoutOne(sets[at].operations).map { operations in
        var sets = sets
        sets[at].operations = operations
        return sets
      }
    }
  }

  /// Runs the server and both clients. Returns an explanation if they differ in the end, or on the way.
  private var problem: String? {
    var server = content
    var clients = [mine, theirs].map { Client(confirmed: content, pending: $0) }
    var order = order
    while clients.contains(where: { !$0.pending.isEmpty }) {
      let wanted = order.isEmpty || order.removeFirst() ? 0 : 1
      let author = clients[wanted].pending.isEmpty ? 1 - wanted : wanted
      let set = clients[author].pending.removeFirst()
      // The server judges, applies and rewrites.
      var now = server
      var stream: [Content.Operation] = []
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
      var back = now
      for operation in now.way(to: server) { back.apply(operation) }
      if back != server { return "\(stream) cannot be taken back" }
      server = now
      for at in clients.indices {
        for operation in stream { clients[at].confirmed.apply(operation) }
        if clients[at].confirmed != server { return "client \(at) has another confirmed content" }
      }
    }
    for (at, client) in clients.enumerated() where client.visible != server {
      return "client \(at) shows another content than the server has"
    }
    return nil
  }

  /// Describes the smallest case below this one in which the replicas differ; nil if they do not differ in this one.
  var failure: String? {
    guard problem != nil else { return nil }
    let least = minimal(self, smaller: \.smaller, fails: { $0.problem != nil })
    return "\(least.problem ?? ""): \(least)"
  }

  /// Returns the failures of three sets against three, of one operation each, in every order: for all contents and all
  /// choices of operations of which the first is the given one.
  ///
  /// Each combination of operations and orders gets another one of the 64 rejections, and half of them are atomic.
  static func threeAgainstThree(
    _ contents: [Content], _ operations: [Content.Operation], first: Int
  ) -> [String] {
    let orders = (0..<64).map { bits in (0..<6).map { bits >> $0 & 1 == 1 } }
      .filter { order in order.count { $0 } == 3 }
    var result: [String] = []
    var rejections = 0
    let count = operations.count
    for content in contents {
      for number in 0..<(count * count * count * count * count) {
        var rest = number
        var choices = [first]
        for _ in 0..<5 {
          choices.append(rest % count)
          rest /= count
        }
        for order in orders {
          rejections += 1
          let sets = choices.enumerated().map { at, choice in
            ChangeSet(
              operations: [operations[choice]], isAtomic: rejections & 64 != 0,
              isRejected: rejections >> at & 1 == 1)
          }
          let input = RebaseCase(
            content: content, mine: Array(sets[..<3]), theirs: Array(sets[3...]), order: order)
          if let failure = input.failure { result.append(failure) }
        }
      }
    }
    return result
  }

  /// Returns the failures of one against one, and of two against one, for all of some contents and operations.
  ///
  /// - Parameter kind: 1 if the first set of one side is atomic, 2 if that of the other side is rejected, 3 for both.
  static func failures(
    _ contents: [Content], _ operations: [Content.Operation], kind: Int
  ) -> [String] {
    let (isAtomic, isRejected) = (kind & 1 != 0, kind & 2 != 0)
    var result: [String] = []
    for content in contents {
      for mine in operations {
        for theirs in operations {
          let mine = ChangeSet(operations: [mine], isAtomic: isAtomic)
          let theirs = ChangeSet(operations: [theirs], isRejected: isRejected)
          let cases = [
            RebaseCase(content: content, mine: [mine], theirs: [theirs], order: [true]),
            RebaseCase(
              content: content, mine: [mine, ChangeSet(operations: theirs.operations)],
              theirs: [theirs], order: [false, true]),
          ]
          result += cases.compactMap(\.failure)
        }
      }
    }
    return result
  }

  /// Returns the failures of up to three against three, in orders by chance, some sets atomic, some rejected.
  static func failures(
    seed: Int, content: (inout SeededGenerator) -> Content,
    operation: (inout SeededGenerator) -> Content.Operation
  ) -> [String] {
    var generator = SeededGenerator(seed: UInt64(seed))
    func sets() -> [ChangeSet] {
      (0..<Int.random(in: 0...3, using: &generator)).map { _ in
        ChangeSet(
          operations: (0..<Int.random(in: 1...3, using: &generator)).map { _ in
            operation(&generator)
          }, isAtomic: .random(using: &generator),
          isRejected: Int.random(in: 0..<4, using: &generator) == 0)
      }
    }
    return (0..<200).compactMap { _ in
      let input = RebaseCase(
        content: content(&generator), mine: sets(), theirs: sets(),
        order: (0..<6).map { _ in .random(using: &generator) })
      return input.failure.map { "seed \(seed): \($0)" }
    }
  }
}
