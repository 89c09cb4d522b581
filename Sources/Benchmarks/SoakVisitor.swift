import Foundation
import Jetstream
import JetstreamWebSocket

/// A client of a soak with its user, who edits, stalls, vanishes and comes back, as dice decide.
@MainActor
final class SoakVisitor {
  /// The number of levels that a shape may have.
  nonisolated static let levels = 16

  private let url: String
  private let user: Int
  private var dice: SoakDice
  private var line = SoakLine()
  private var client: Client?
  private var scopes: [Scope] = []
  /// The clients and scopes that are not used any more.
  private var released: [Released] = []

  private struct Released {
    weak var object: AnyObject?
  }

  init(url: String, user: Int, seed: UInt64) {
    (self.url, self.user) = (url, user)
    dice = SoakDice(seed: seed)
  }

  /// Uses the server until a time; then the network works again.
  func run(until end: ContinuousClock.Instant) async {
    await arrive()
    while ContinuousClock.now < end {
      await pause(0.5...6)
      if client?.status == .offline { try? await client?.connect() }
      await act()
      discardConflicts()
    }
    line.restore()
  }

  private func act() async {
    switch Int.random(in: 0..<100, using: &dice) {
    case ..<6:
      line.stall()
      await editMeanwhile(1...10)
      line.restore()
    case ..<10: line.cut()
    case ..<16:
      line.darken(silently: dice.hits(percent: 50))
      await editMeanwhile(1...30)
      line.restore()
    case ..<19: await start()
    case ..<24:
      if let scope = scopes.randomElement(using: &dice) { leave(scope) }
      await join()
    default: edit()
    }
  }

  private func pause(_ seconds: ClosedRange<Double>) async {
    try? await Task.sleep(for: dice.seconds(seconds))
  }

  private func editMeanwhile(_ seconds: ClosedRange<Double>) async {
    await pause(seconds)
    edit()
    await pause(0...1)
  }

  // MARK: Coming and going

  private func arrive() async {
    line = SoakLine()
    let client = Client(
      transport: SoakTransport(url: url, line),
      backoff: Backoff(first: .milliseconds(200), limit: .seconds(5)))
    client.credentials = { [user, dice = SharedDice(seed: dice.next())] reason in
      let isStale = if case .refused = reason { false } else { dice.hits(percent: 5) }
      return Credentials(params: ["user": .integer(Int64(user)), "isStale": .bool(isStale)])
    }
    self.client = client
    try? await client.connect()
    await join()
    if dice.hits(percent: 50) { await join() }
  }

  /// Begins anew, as another client of the user: the process has ended, or the network has failed before.
  private func start() async {
    if dice.hits(percent: 50) {
      client?.close()
    } else {
      line.darken(silently: false)
    }
    released += scopes.map { Released(object: $0) } + [Released(object: client)]
    (client, scopes) = (nil, [])
    await pause(0...5)
    await arrive()
  }

  private func join() async {
    let names = SoakServer.rooms(of: user).filter { name in !scopes.contains { $0.name == name } }
    guard let client, let name = names.randomElement(using: &dice) else { return }
    let scope = Scope(name: name, root: Canvas())
    do {
      try await client.fetch(scope)
      scopes.append(scope)
    } catch {
      // A scope that is refused is not synced.
      released.append(Released(object: scope))
    }
  }

  private func leave(_ scope: Scope) {
    _ = try? client?.leave(scope)
    scopes.removeAll { $0 === scope }
    released.append(Released(object: scope))
  }

  // MARK: Editing

  private func edit() {
    guard let scope = scopes.randomElement(using: &dice), let canvas = scope.root as? Canvas else {
      return
    }
    let count = canvas.shapes.count
    guard count > 0 else { return }
    let place = Int.random(in: 0..<count, using: &dice)
    let shape = canvas.shapes[place]
    switch Int.random(in: 0..<100, using: &dice) {
    case ..<45: shape.level = Int.random(in: 0..<Self.levels, using: &dice)
    case ..<60:
      scope.modifyAtomically("move") {
        shape.x = Float.random(in: 0..<1_000, using: &dice)
        shape.y = Float.random(in: 0..<1_000, using: &dice)
      }
    case ..<65:
      let length = Int.random(in: 16...16_384, using: &dice)
      canvas.note = String(repeating: "\(length % 10)", count: length)
    case ..<70: shape.color = RGBAColor(rgba: UInt32.random(in: 0...UInt32.max, using: &dice))
    case ..<85: canvas.shapes.move(from: place, to: Int.random(in: 0..<count, using: &dice))
    default:
      // The scope keeps its size.
      if count < SoakServer.shapes {
        canvas.shapes.insert(Shape(), at: place)
      } else {
        canvas.shapes.remove(at: place)
      }
    }
  }

  private func discardConflicts() {
    for scope in scopes {
      for conflict in scope.conflicts.items { scope.conflicts.discard(conflict.id) }
    }
  }

  // MARK: The end

  /// The replicas of the visitor.
  struct Standing {
    var replicas = 0
    /// Those that differ from the server's scope, or have pending change sets.
    var differing = 0
    /// The clients and scopes that are not used any more, and are still there.
    var unreleased = 0

    static func + (a: Standing, b: Standing) -> Standing {
      Standing(
        replicas: a.replicas + b.replicas, differing: a.differing + b.differing,
        unreleased: a.unreleased + b.unreleased)
    }
  }

  /// Compares the replicas with the server's scopes, by the number of the scope.
  func compare(with digests: [Substring]) -> Standing {
    guard let client else { return Standing() }
    if client.status == .offline { Task { try? await client.connect() } }
    let equal = scopes.count { scope in
      guard let number = scope.name.split(separator: " ").last.flatMap({ Int($0) }),
        digests.indices.contains(number), client.syncState(of: scope)?.pendingCount == 0
      else { return false }
      return SoakDigest(scope.canonicalJSON).description == digests[number]
    }
    return Standing(
      replicas: scopes.count, differing: scopes.count - equal,
      unreleased: released.count { $0.object != nil })
  }

  /// Ends the session.
  func close() { client?.close() }
}
