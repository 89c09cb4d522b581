import Testing

@testable import Jetstream

private final class Player: ModelObject {
  @Property var name = ""

  var slots: [Player?] { [name.isEmpty ? nil : self, self, nil] }
  var byName: [String: Player?] { [name: self, "none": nil] }
  var setOfSlots: Set<Player?> { name.isEmpty ? [self] : [self, nil] }
  var slotsOrNone: [Player?]? { slots }
}

@Suite("Computed properties that return models with none among them", .paced)
struct OptionalModelTests {
  private let listener = Listener()

  @Test("They keep none of the models alive")
  func noCycle() {
    weak var weakPlayer: Player?
    do {
      let player = Player()
      weakPlayer = player
      player.observeChange(listener, \.slots, \.byName, isolation: here()) { $0.called() }
      player.observeChange(listener, \.setOfSlots, \.slotsOrNone, isolation: here()) { $0.called() }
      player.name = "x"
    }
    #expect(weakPlayer == nil)
  }

  @Test("Their old values keep none of the models alive", arguments: [false, true])
  func noCycleOfOldValues(isImmediate: Bool) {
    weak var weakPlayer: Player?
    do {
      let player = Player()
      weakPlayer = player
      func observe<Value>(_ keyPath: KeyPath<Player, Value>) {
        if isImmediate {
          player.observeChangeImmediately(keyPath) { _, _ in }
        } else {
          player.observeChange(keyPath, isolation: here()) { _, _ in }
        }
      }
      observe(\.slots)
      observe(\.byName)
      observe(\.setOfSlots)
      observe(\.slotsOrNone)
      player.name = "x"
    }
    #expect(weakPlayer == nil)
  }

  @Test("An observer is told of them when one is another model or none, with what was there before")
  func changes() {
    let (one, two) = (Player(), Player())
    final class Team: ModelObject {
      @Property var first: Player?
      @Property var number = 0
      var slots: [Player?] { number < 0 ? [] : [first, nil] }
      var byName: [String: Player?] { number < 0 ? [:] : ["a": first, "b": nil] }
      var set: Set<Player?> { number < 0 ? [] : [first, nil] }
    }
    let team = Team()
    let scope = manualScope(team)
    func name(_ player: Player?) -> String {
      player === one ? "1" : player === two ? "2" : player == nil ? "-" : "?"
    }
    func text(_ players: some Sequence<Player?>) -> String { players.map(name).joined() }
    func text(_ players: [String: Player?]) -> String {
      players.sorted { $0.key < $1.key }.map { $0.key + name($0.value) }.joined()
    }
    var told: [String] = []
    team.observeChange(\.slots, isolation: here()) { told.append("\(text($0))>\(text($1))") }
    team.observeChange(\.byName, isolation: here()) { told.append("\(text($0))>\(text($1))") }
    team.observeChange(\.set, isolation: here()) {
      told.append("set \(text($0).sorted())>\(text($1).sorted())")
    }
    team.observeChange(listener, \.slots, \.byName, \.set, isolation: here()) { $0.called() }
    func log(_ change: () -> Void) -> [String] {
      (told, listener.count) = ([], 0)
      change()
      scope.flush()
      #expect(listener.count == (told.isEmpty ? 0 : 1))
      return told.sorted()
    }
    #expect(log { team.number = 1 } == [])
    #expect(
      log { team.first = one } == ["-->1-", "a-b->a1b-", #"set ["-"]>["-", "1"]"#])
    #expect(log { team.number = 2 } == [])
    #expect(
      log { team.first = two } == ["1->2-", "a1b->a2b-", #"set ["-", "1"]>["-", "2"]"#])
    #expect(log { team.number = -1 } == ["2->", "a2b->", #"set ["-", "2"]>[]"#])
  }

  @Test("A model that was released is not the same as none")
  func released() {
    var player: Player? = Player()
    let array = RememberedValue<[Player?]>([player, nil], keepsModels: false)
    let dictionary = RememberedValue<[Int: Player?]>([1: player, 2: nil], keepsModels: false)
    let set = RememberedValue<Set<Player?>>([player, nil], keepsModels: false)
    #expect(array.isSame(as: [player, nil]) && !array.isSame(as: [nil, player]))
    #expect(dictionary.isSame(as: [1: player, 2: nil]))
    #expect(!dictionary.isSame(as: [1: player, 3: nil]))
    #expect(set.isSame(as: [nil, player]) && !set.isSame(as: [player]))
    #expect(array.value == [player, nil] && dictionary.value == [1: player, 2: nil])
    #expect(set.value == [player, nil])
    player = nil
    #expect(!array.isSame(as: [nil, nil]) && !dictionary.isSame(as: [1: nil, 2: nil]))
    #expect(!set.isSame(as: [nil]))
    #expect(array.value == [nil, nil] && dictionary.value == [1: nil, 2: nil])
    #expect(set.value == [nil])
  }
}
