import Jetstream
import JetstreamServer
import Testing

final class Reading: ModelObject {
  @Property var integer = 1
  @Property var float: Float = 1
  @Property var string = "test 1"
}

/// Pending sets that cover each other in every way, decided in every order.
@Suite("The pending queue", .paced)
struct PendingQueueTests {
  /// Which properties a set changes. The set's number, from 2 up, is the value.
  struct Fields: OptionSet, Hashable {
    let rawValue: Int
    static let integer = Fields(rawValue: 1)
    static let float = Fields(rawValue: 2)
    static let string = Fields(rawValue: 4)
    static let all: Fields = [.integer, .float, .string]
  }

  /// The values by property, each as the number that it stands for.
  struct Values: Equatable, CustomStringConvertible {
    var integer = 1
    var float = 1
    var string = 1

    init() {}

    init(_ number: Int) { (integer, float, string) = (number, number, number) }

    init(_ reading: Reading) {
      integer = reading.integer
      float = Int(reading.float)
      string = Int(reading.string.dropFirst(5)) ?? -1
    }

    mutating func apply(_ fields: Fields, _ number: Int) {
      if fields.contains(.integer) { integer = number }
      if fields.contains(.float) { float = number }
      if fields.contains(.string) { string = number }
    }

    var description: String { "(\(integer), \(float), \(string))" }
  }

  /// One case: what the sets change, what the server says, and what that leads to in the sets' order.
  struct Case: CustomTestStringConvertible {
    let name: String
    let sets: [Fields]
    let accepted: [Bool]
    let end: Int
    var testDescription: String { name }
  }

  static let cases = [
    Case(name: "one completed", sets: [.all], accepted: [true], end: 2),
    Case(name: "one reverted", sets: [.all], accepted: [false], end: 1),
    Case(name: "two reverted", sets: [.all, .all], accepted: [false, false], end: 1),
    Case(
      name: "subsets", sets: [.integer, [.integer, .float], .all],
      accepted: [false, false, false], end: 1),
    Case(
      name: "supersets", sets: [.all, [.integer, .float], .integer],
      accepted: [false, false, false], end: 1),
    Case(name: "in between", sets: [.all, .all], accepted: [false, true], end: 3),
    Case(
      name: "over sets", sets: [.all, [.integer, .string], .all],
      accepted: [false, false, false], end: 1),
  ]

  @Test("The reference cases, decided in every order", arguments: cases)
  func referenceCases(_ test: Case) {
    for order in permutations(test.sets.count) {
      let queue = Queue(test.sets)
      for place in order { queue.decide(place, isAccepted: test.accepted[place]) }
      #expect(Values(queue.reading) == Values(test.end), "order \(order)")
      #expect(queue.server.scope.pendingChangeSets.count == 0)
    }
  }

  @Test("Every reference case with every decision in every order, in one frame or in several")
  func everything() {
    for sets in Set(Self.cases.map(\.sets)) {
      for order in permutations(sets.count) {
        for bits in 0..<(1 << sets.count) {
          for frames in 0..<(1 << (sets.count - 1)) {
            let queue = Queue(sets)
            var frame: [(Int, Bool)] = []
            for (at, place) in order.enumerated() {
              frame.append((place, bits >> place & 1 == 1))
              // A bit says that the next decision comes in the same frame.
              if frames >> at & 1 == 0 || at == order.count - 1 {
                queue.decide(frame)
                frame = []
              }
            }
          }
        }
      }
    }
  }

  @Test("The first of two is rejected: the second shows, and is alone")
  func firstRejected() {
    let queue = Queue([.all, .all])
    queue.decide(0, isAccepted: false)
    #expect(Values(queue.reading) == Values(3))
    #expect(queue.server.scope.pendingChangeSets.count == 1)
    queue.decide(1, isAccepted: false)
    #expect(Values(queue.reading) == Values(1))
  }

  private func permutations(_ count: Int) -> [[Int]] {
    var result: [[Int]] = [[]]
    for number in 0..<count {
      result = result.flatMap { order in
        (0...order.count).map { place in
          var order = order
          order.insert(number, at: place)
          return order
        }
      }
    }
    return result
  }

  /// Sets that wait for the server, and what they should look like.
  final class Queue {
    let reading = Reading()
    let server: ScriptedServer
    private let sets: [Fields]
    private let fates: [Fate]
    private let messages: [Int]
    private var confirmed = Values()
    private var undecided: Set<Int>

    init(_ sets: [Fields]) {
      server = ScriptedServer(root: reading, configuration: .anyOrder)
      server.join()
      self.sets = sets
      fates = sets.enumerated().map { [server, reading] place, fields in
        let number = place + 2
        return Fate(
          server.scope.modify {
            if fields.contains(.integer) { reading.integer = number }
            if fields.contains(.float) { reading.float = Float(number) }
            if fields.contains(.string) { reading.string = "test \(number)" }
          })
      }
      messages = server.takeSyncs().map(\.index)
      undecided = Set(sets.indices)
      check("before any decision")
    }

    func decide(_ place: Int, isAccepted: Bool) { decide([(place, isAccepted)]) }

    /// One frame of decisions.
    func decide(_ decisions: [(place: Int, isAccepted: Bool)]) {
      server.deliver(
        decisions.map { place, isAccepted in
          .scopeSyncReply(
            ScopeSyncReply(
              replyTo: messages[place],
              fragmentReplies: [FragmentReply(error: isAccepted ? nil : .rejected("no"))]))
        })
      for (place, isAccepted) in decisions {
        undecided.remove(place)
        if isAccepted { confirmed.apply(sets[place], place + 2) }
        #expect(fates[place].handle.state == (isAccepted ? .accepted : .rejected))
      }
      check("after \(decisions) of \(sets.map(\.rawValue))")
    }

    private func check(_ moment: String) {
      var visible = confirmed
      for place in undecided.sorted() { visible.apply(sets[place], place + 2) }
      #expect(Values(reading) == visible, "\(moment)")
      #expect(server.scope.pendingChangeSets.count == undecided.count, "\(moment)")
      #expect(fates.allSatisfy { $0.isConsistent }, "\(moment)")
      #expect(server.engine.checkInvariants() == [], "\(moment)")
      #expect(server.takeSyncs().isEmpty, "\(moment)")
    }
  }
}
