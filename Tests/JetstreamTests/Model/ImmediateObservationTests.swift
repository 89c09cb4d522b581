import Testing

@testable import Jetstream

private final class Account: ModelObject {
  @Property var balance = 0
  @Property var limit = 100
  @Property var usesLimit = false
  @Property var partner: Account?
  @Property var children: ModelArray<Account> = []

  var inCents: Int {
    get { balance * 100 }
    set { balance = newValue / 100 }
  }
  var sum: Int {
    get { balance }
    set { balance = newValue }
  }

  var available: Int { usesLimit ? balance + limit : balance }
  var partnerBalance: Int? { partner?.balance }
  var total: Int { children.reduce(balance) { $0 + $1.balance } }
  var pair: (Int, Int) { (balance, 1) }
  var youngest: Account? { children.last }
  var family: [Account] { [self] + children }
  var holder: Account { partner ?? self }
}

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct ImmediateObservationTests {
  private let account = Account()
  private let scope: Scope
  private let listener = Listener()

  init() { scope = manualScope(account) }

  private func log(after change: () -> Void) -> [String] {
    listener.log = []
    change()
    return listener.log
  }

  @Test("A settable getter that makes something of one property is told with its own values")
  func settable() {
    account.observeChangeImmediately(listener, \.inCents) { $0.log.append("cents \($1) \($2)") }
    account.observeChangeImmediately(listener, \.sum) { $0.log.append("sum \($1) \($2)") }
    #expect(log { account.balance = 3 }.sorted() == ["cents 0 300", "sum 0 3"])
    #expect(log { account.inCents = 500 }.sorted() == ["cents 300 500", "sum 3 5"])
  }

  @Test(
    "The signal of all properties calls once for each change, for those that a filter lets through")
  func severalKeyPaths() {
    account.signals.onPropertyChange.listen(
      listener, filter: { ["balance", "partner"].contains($0.key) }
    ) { me, change in
      me.log.append(change.key)
    }
    var bare: [String] = []
    account.signals.onPropertyChange.listen(filter: { ["limit", "children"].contains($0.key) }) {
      bare.append($0.key)
    }
    account.balance = 1
    account.limit = 1
    account.partner = Account()
    account.children.append(Account())
    account.balance = 2
    #expect(listener.log == ["balance", "partner", "balance"])
    #expect(bare == ["limit", "children"])
  }

  @Test("A computed property, with old and new value, after each write")
  func composite() {
    account.observeChangeImmediately(listener, \.available) { me, old, new in
      me.log.append("\(old)>\(new)")
    }
    #expect(log { account.balance = 5 } == ["0>5"])
    #expect(log { account.limit = 50 } == [])
    #expect(log { account.usesLimit = true } == ["5>55"])
    #expect(log { account.limit = 60 } == ["55>65"])
    #expect(log { account.partner = Account() } == [])
    #expect(log { account.usesLimit = false } == ["65>5"])
    #expect(log { account.limit = 70 } == [])
    #expect(
      log {
        account.balance = 6
        account.balance = 5
      } == ["5>6", "6>5"])
  }

  @Test("Through other models, which may be exchanged")
  func throughModels() {
    let (a, b) = (Account(), Account())
    a.balance = 1
    b.balance = 2
    account.observeChangeImmediately(\.partnerBalance) { [listener] old, new in
      listener.log.append("\(old.map(String.init) ?? "-")>\(new.map(String.init) ?? "-")")
    }
    #expect(log { account.partner = a } == ["->1"])
    #expect(log { a.balance = 3 } == ["1>3"])
    #expect(log { account.partner = b } == ["3>2"])
    #expect(log { a.balance = 4 } == [])
    #expect(log { account.partner = nil } == ["2>-"])
    #expect(log { b.balance = 4 } == [])
    #expect(a.record?.observers?.propertyChange?.hasListeners == false)
    #expect(b.record?.observers?.propertyChange?.hasListeners == false)
  }

  @Test("A value that cannot be compared counts as different")
  func incomparable() {
    account.observeChangeImmediately(listener, \.pair) { me, old, new in
      me.log.append("\(old.0)>\(new.0)")
    }
    #expect(log { account.balance = 1 } == ["0>1"])
    #expect(log { account.limit = 1 } == [])
  }

  @Test("Models are compared by identity and not kept alive")
  func models() {
    account.observeChangeImmediately(listener, \.youngest) { me, old, new in
      me.log.append("\(old != nil)>\(new != nil)")
    }
    account.observeChangeImmediately(listener, \.family) { me, old, new in
      me.log.append("\(old.count)>\(new.count)")
    }
    account.observeChangeImmediately(listener, \.holder) { me, old, new in
      me.log.append(old === new ? "same" : "other")
    }
    weak var weakChild: Account?
    do {
      let child = Account()
      weakChild = child
      #expect(log { account.children = [child] } == ["false>true", "1>2"])
      #expect(log { child.balance = 7 } == [])
      #expect(log { account.partner = child } == ["other"])
      #expect(log { account.partner = nil } == ["other"])
      #expect(log { account.children = [] } == ["true>false", "2>1"])
    }
    scope.advance()
    #expect(weakChild == nil)
  }

  @Test("Neither the model, its observer, nor what the getter reads is kept alive")
  func lifetimes() {
    weak var weakAccount: Account?
    weak var weakListener: Listener?
    let other = Account()
    do {
      let account = Account()
      let listener = Listener()
      weakAccount = account
      weakListener = listener
      account.partner = other
      account.observeChangeImmediately(listener, \.family) { me, _, _ in me.called() }
      account.observeChangeImmediately(listener, \.partnerBalance) { me, _, _ in me.called() }
      other.balance += 1
      #expect(listener.count == 1)
      #expect(other.record?.observers?.propertyChange?.hasListeners == true)
    }
    #expect(weakAccount == nil && weakListener == nil)
    #expect(other.record?.observers?.propertyChange?.hasListeners == false)

    var temporary: Listener? = Listener()
    let token = account.observeChangeImmediately(temporary!, \.available) { me, _, _ in
      me.called()
    }
    temporary = nil
    account.balance += 1
    #expect(account.record?.observers?.propertyChange?.hasListeners == false)
    #expect(account.record?.observers?.extras?.composites.isEmpty == true)
    #expect(token.isCancelled)
  }

  @Test("It ends by its token, by its observer, and inside its own callback")
  func ends() {
    let token = account.observeChangeImmediately(listener, \.available) { me, _, _ in me.called() }
    account.balance = 1
    token.cancel()
    token.cancel()
    account.balance = 2
    #expect(listener.count == 1)
    account.observeChangeImmediately(listener, \.available) { me, _, _ in me.called() }
    account.balance = 3
    account.removeObservers(listener)
    account.balance = 4
    #expect(listener.count == 2)
    var own: ObservationToken?
    own = account.observeChangeImmediately(listener, \.available) { me, _, _ in
      me.called()
      own?.cancel()
    }
    account.balance = 5
    account.balance = 6
    #expect(listener.count == 3)
    #expect(account.record?.observers?.extras?.composites.isEmpty == true)
  }

  @Test("A callback that writes what it observes is called for that as well")
  func writes() {
    account.observeChangeImmediately(listener, \.total) { [account] me, old, new in
      me.log.append("\(old)>\(new)")
      if new < 3 { account.balance += 1 }
    }
    account.balance = 1
    #expect(listener.log == ["0>1", "1>2", "2>3"])
  }

  @Test("Remote changes are told like local ones")
  func remote() {
    account.observeChangeImmediately(listener, \.available) { me, old, new in
      me.log.append("\(old)>\(new)")
    }
    scope.apply([
      SyncFragment(.change, uuid: account.uuid, className: "Account", properties: ["balance": 9])
    ])
    #expect(listener.log == ["0>9"])
  }

  @Test("Once a tick with the value as it was the last time and as it is now")
  func coalescedValues() {
    account.observeChange(listener, \.balance, isolation: here()) { me, old, new in
      me.log.append("\(old)>\(new)")
    }
    var totals: [String] = []
    let token = account.observeChange(\.total, isolation: here()) { old, new in
      totals.append("\(old)>\(new)")
    }
    account.balance = 1
    account.balance = 2
    scope.ticker.tick()
    #expect(listener.log == ["0>2"])
    account.balance = 3
    account.balance = 2
    account.limit = 1
    scope.ticker.tick()
    #expect(listener.log == ["0>2"])
    let child = Account()
    child.balance = 10
    account.children.append(child)
    account.balance = 4
    scope.ticker.tick()
    #expect(listener.log == ["0>2", "2>4"])
    #expect(totals == ["0>2", "2>14"])
    token.cancel()
    account.balance = 5
    scope.ticker.tick()
    #expect(totals.count == 2)
  }

  @Test("A reference reports the old model although nothing else holds it")
  func coalescedReference() {
    account.partner = Account()
    account.partner?.balance = 3
    account.observeChange(listener, \.partner, isolation: here()) { me, old, new in
      me.log.append("\(old?.balance ?? -1)>\(new?.balance ?? -1)")
    }
    account.partner = nil
    scope.flush()
    #expect(listener.log == ["3>-1"])
  }

  @Test("100 writes in one transaction give one call of each coalesced observer")
  func hundredWrites() {
    account.observeChange(listener, isolation: here()) { $0.log.append("all") }
    account.observeChange(listener, \.balance, isolation: here()) { $0.log.append("one") }
    account.observeChange(listener, \.total, isolation: here()) { $0.log.append("composite") }
    account.observeTreeChange(listener, isolation: here()) { $0.log.append("tree") }
    account.observeDifference(listener, \.children, isolation: here()) { me, _ in
      me.log.append("difference")
    }
    for value in 1...100 {
      account.balance = value
      account.children.append(Account())
    }
    #expect(listener.log.isEmpty)
    scope.flush()
    #expect(listener.log.sorted() == ["all", "composite", "difference", "one", "tree"])
  }
}
