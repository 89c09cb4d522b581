import Testing

@testable import Jetstream

private final class Person: ModelObject {
  @Property var name = ""
  @Property var nickname: String?
  @Property var usesNickname = false
  @Property var friend: Person?
  @Property var children: ModelArray<Person> = []
  @Property var score = 0.0

  var shown: String { usesNickname ? nickname ?? name : name }
  var initial: Character? { shown.first }
  var friendName: String? { friend?.name }
  var totalScore: Double { children.reduce(score) { $0 + $1.score } }
  var youngest: Person? { children.last }
  var family: [Person] { [self] + children }
  var all: ModelArray<Person> { children }
  var mixed: (String, Int) { (name, 1) }
  var byName: [String: Person] { [name: self] }
  var set: Set<Person> { [self] }
  var setOrNone: Set<Person>? { [self] }
  var byNumber: [Int: Person] { [name.count: self] }
  var familyOrNone: [Person]? { family }
  var keyed: ModelDictionary<String, Person> { ["me": self] }
}

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct CompositeTests {
  private let person = Person()
  private let scope: Scope
  private let listener = Listener()

  init() { scope = manualScope(person) }

  private func calls(after change: () -> Void) -> Int {
    let before = listener.count
    change()
    scope.flush()
    return listener.count - before
  }

  @Test("Fires for each dependency, and nothing of it goes into fragments")
  func dependencies() {
    person.observeChange(listener, \.shown, isolation: here()) { $0.called() }
    let sets = scope.changeSets { person.name = "Ada" }
    #expect(listener.count == 1)
    #expect(sets.first?.fragments.first?.properties == ["name": "Ada"])
    #expect(calls { person.score = 1 } == 0)
  }

  @Test("Branches that change bring other dependencies")
  func branches() {
    person.observeChange(listener, \.shown, isolation: here()) { $0.called() }
    #expect(calls { person.nickname = "A" } == 0)
    #expect(calls { person.usesNickname = true } == 1)
    #expect(calls { person.nickname = "B" } == 1)
    #expect(calls { person.name = "unseen" } == 0)
    #expect(calls { person.usesNickname = false } == 1)
    #expect(calls { person.nickname = "C" } == 0)
    #expect(calls { person.name = "seen" } == 1)
  }

  @Test("Fires only when the value differs")
  func onlyDifferences() {
    person.name = "Ada"
    scope.flush()
    person.observeChange(listener, \.initial, isolation: here()) { $0.called() }
    #expect(calls { person.name = "Alan" } == 0)
    #expect(calls { person.name = "Bob" } == 1)
    #expect(calls { person.name = "" } == 1)
    #expect(
      calls {
        person.name = "X"
        person.name = ""
      } == 0)
  }

  @Test("Follows child models and collections, also ones that are exchanged")
  func throughModels() {
    let (friend, other) = (Person(), Person())
    person.friend = friend
    scope.flush()
    person.observeChange(listener, \.friendName, isolation: here()) { $0.called() }
    #expect(calls { friend.name = "F" } == 1)
    #expect(calls { person.friend = other } == 1)
    #expect(calls { friend.name = "gone" } == 0)
    #expect(calls { other.name = "O" } == 1)
    #expect(calls { person.friend = nil } == 1)

    person.observeChange(listener, \.totalScore, isolation: here()) { $0.called() }
    let child = Person()
    #expect(calls { person.children.append(child) } == 0)
    #expect(calls { child.score = 2 } == 1)
    #expect(calls { person.children.remove(child) } == 1)
    #expect(calls { child.score = 3 } == 0)
  }

  @Test("Two composites of one property both fire")
  func twoComposites() {
    person.observeChange(listener, \.shown, isolation: here()) { $0.log.append("shown") }
    person.observeChange(listener, \.initial, isolation: here()) { $0.log.append("initial") }
    person.name = "Ada"
    scope.flush()
    #expect(listener.log == ["shown", "initial"])
  }

  @Test("Several key paths in one observation fire once a tick")
  func severalPaths() {
    person.observeChange(listener, \.shown, \.initial, \.name, \.score, isolation: here()) {
      $0.called()
    }
    #expect(
      calls {
        person.name = "Ada"
        person.score = 1
      } == 1)
  }

  @Test("a getter may lead through key paths of values")
  func valuePaths() {
    person.observeChange(listener, \.name.count, \.children.count, isolation: here()) {
      $0.called()
    }
    #expect(calls { person.name = "A" } == 1)
    #expect(calls { person.name = "B" } == 0)
    #expect(calls { person.children.append(Person()) } == 1)
  }

  @Test("not-a-number stays what it is; a value that cannot be compared counts as different")
  func oddValues() {
    person.score = .nan
    scope.flush()
    person.observeChange(listener, \.totalScore, isolation: here()) { $0.called() }
    #expect(calls { person.children.append(Person()) } == 0)
    person.observeChange(listener, \.mixed, isolation: here()) { $0.called() }
    #expect(calls { person.name = "A" } == 1)
  }

  @Test("a getter that gives models compares their identity and keeps none of them alive")
  func models() {
    person.observeChange(listener, \.youngest, isolation: here()) { $0.called() }
    person.observeChange(listener, \.family, isolation: here()) { $0.log.append("family") }
    person.observeChange(listener, \.all, isolation: here()) { $0.log.append("all") }
    weak var weakChild: Person?
    do {
      let child = Person()
      weakChild = child
      #expect(calls { person.children = [child] } == 1)
      #expect(listener.log == ["family", "all"])
      #expect(calls { child.name = "same" } == 0)
      #expect(calls { person.children = [] } == 1)
    }
    scope.advance()
    #expect(weakChild == nil)
  }

  @Test("a composite that leads back to its own model does not keep it alive")
  func noCycle() {
    weak var weakPerson: Person?
    do {
      let person = Person()
      weakPerson = person
      person.observeChange(listener, \.family, \.shown, isolation: here()) { $0.called() }
      person.observeChange(listener, \.byName, \.set, \.keyed, isolation: here()) { $0.called() }
      person.name = "x"
    }
    #expect(weakPerson == nil)
  }

  @Test(
    "old values that lead back to their own model do not keep it alive", arguments: [false, true])
  func noCycleOfOldValues(isImmediate: Bool) {
    weak var weakPerson: Person?
    do {
      let person = Person()
      weakPerson = person
      func observe<Value>(_ keyPath: KeyPath<Person, Value>) {
        if isImmediate {
          person.observeChangeImmediately(keyPath) { _, _ in }
        } else {
          person.observeChange(keyPath, isolation: here()) { _, _ in }
        }
      }
      observe(\.byName)
      observe(\.set)
      observe(\.keyed)
      observe(\.familyOrNone)
      observe(\.byNumber)
      observe(\.setOrNone)
      person.name = "x"
    }
    #expect(weakPerson == nil)
  }

  @Test("a set, a dictionary or an optional array of models is told with what was in it before")
  func oldContainers() {
    let (one, two) = (Person(), Person())
    final class Team: ModelObject {
      @Property var members: ModelArray<Person> = []
      @Property var hasNone = false
      var set: Set<Person> { Set(members) }
      var byName: [Int: Person] { members.first.map { [1: $0] } ?? [:] }
      var array: [Person]? { hasNone ? nil : Array(members) }
    }
    let team = Team()
    let scope = manualScope(team)
    let names = [ObjectIdentifier(one): "1", ObjectIdentifier(two): "2"]
    func text(_ persons: some Sequence<Person>) -> String {
      persons.compactMap { names[ObjectIdentifier($0)] }.sorted().joined()
    }
    var told: [String] = []
    team.observeChange(\.set, isolation: here()) { told.append("set \(text($0))>\(text($1))") }
    team.observeChange(\.byName, isolation: here()) {
      told.append("byName \(text($0.values))>\(text($1.values))")
    }
    team.observeChange(\.array, isolation: here()) {
      told.append("array \($0.map(text) ?? "-")>\($1.map(text) ?? "-")")
    }
    func log(_ change: () -> Void) -> [String] {
      told = []
      change()
      scope.flush()
      return told.sorted()
    }
    #expect(log { team.members = [one, two] } == ["array >12", "byName >1", "set >12"])
    // The same set; the array has another order.
    #expect(log { team.members = [two, one] } == ["array 12>12", "byName 1>2"])
    #expect(log { team.hasNone = true } == ["array 12>-"])
    #expect(log { team.members.remove(two) } == ["byName 2>1", "set 12>1"])
    #expect(log { team.hasNone = false } == ["array ->1"])
  }

  @Test("a dictionary or a set of models that a getter makes is told when another model is in it")
  func containers() {
    let (one, two) = (Person(), Person())
    final class Team: ModelObject {
      @Property var first: Person?
      @Property var second: Person?
      var byName: [String: Person] { first.map { ["a": $0] } ?? [:] }
      var set: Set<Person> { Set([first, second].compactMap(\.self)) }
      var keyed: ModelDictionary<String, Person> { first.map { ["a": $0] } ?? [:] }
      var byNumber: [Int: Person] { first.map { [1: $0] } ?? [:] }
      var hashed: [String: any Hashable & AnyObject] { first.map { ["a": $0] } ?? [:] }
      var optional: [String: Person?] { ["a": first] }
    }
    let team = Team()
    let scope = manualScope(team)
    team.observeChange(listener, \.byName, isolation: here()) { $0.log.append("byName") }
    team.observeChange(listener, \.set, isolation: here()) { $0.log.append("set") }
    team.observeChange(listener, \.keyed, isolation: here()) { $0.log.append("keyed") }
    team.observeChange(listener, \.byNumber, isolation: here()) { $0.log.append("byNumber") }
    team.observeChange(listener, \.hashed, isolation: here()) { $0.log.append("hashed") }
    team.observeChange(listener, \.optional, isolation: here()) { $0.log.append("optional") }
    func log(_ change: () -> Void) -> [String] {
      listener.log = []
      change()
      scope.flush()
      return listener.log.sorted()
    }
    let all = ["byName", "byNumber", "hashed", "keyed", "optional"]
    #expect(log { team.first = one } == all + ["set"])
    #expect(log { (team.first, team.second) = (two, one) } == all + ["set"])
    #expect(log { (team.first, team.second) = (one, two) } == all)
    #expect(log { one.name = "same" }.isEmpty)
    #expect(log { team.first = nil } == all + ["set"])
  }

  @Test("many composites of one model are followed without searching each other")
  func manyComposites() {
    let people = (0..<2_000).map { _ in Person() }
    for one in people {
      one.friend = person
      one.observeChange(listener, \.friendName, isolation: here()) { $0.called() }
    }
    let holder = Person()
    holder.children = ModelArray(people)
    let second = Scope(name: "S", root: Person(), ticker: scope.ticker)
    #expect(calls { person.name = "all" } == 2_000)
    #expect(person.record?.nodes.count == 2_000)
    withExtendedLifetime((holder, second)) {}
  }

  @Test("The observer is told about a change made by another composite's observer, next tick")
  func chain() {
    person.observeChange(listener, \.initial, isolation: here()) { [person] me in
      me.log.append("initial")
      person.score += 1
    }
    person.observeChange(listener, \.totalScore, isolation: here()) { $0.log.append("score") }
    person.name = "A"
    scope.flush()
    #expect(listener.log == ["initial"])
    scope.flush()
    #expect(listener.log == ["initial", "score"])
  }
}
