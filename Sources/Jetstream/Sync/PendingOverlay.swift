import Foundation

/// What the pending change sets do to the properties they touch, over the confirmed values.
///
/// A value: the confirmed base of each touched property, and the pending changes in the order of their
/// sets. What is visible is the base with the pending changes applied: a pending assignment hides the
/// base, pending operations are done again on it. Nothing is kept for a property that no pending set
/// touches.
struct PendingOverlay {
  /// A confirmed value. What a collection was before the first pending set is worked out only when
  /// somebody else changes it.
  enum Base {
    case known(PropertyContent)
    case before(SealedChanges.Outcome)

    var value: PropertyContent {
      switch self {
      case .known(let value): value
      case .before(.number(let before, _)): PropertyContent(before)
      case .before(.list(let now, let steps)): .list(steps.undone(on: now).models.map(\.uuid))
      }
    }
  }

  private struct Column {
    private var base: Base
    /// What was accepted since, and is not done to the base yet, with what a counter can be meanwhile.
    private var late: (operations: [PropertyOperation], range: CounterRange) = ([], .unknown)
    private(set) var entries: [Entry] = []
    /// What is visible, once it was asked for: merging takes a step for each pending change.
    private var shown: PropertyContent?
    /// Who has changed the base last while something is pending, if they have said so.
    var author: String?

    init(base: Base) { self.base = base }

    mutating func confirmed() -> PropertyContent {
      if case .known(let value) = base, late.operations.isEmpty { return value }
      let value = base.value.applying(late.operations, within: late.range)
      base = .known(value)
      late.operations = []
      return value
    }

    mutating func visible(asValues: Bool) -> PropertyContent {
      if let shown { return shown }
      let result = entries.reduce(confirmed()) { $1.change.applied(to: $0, asValue: asValues) }
      shown = result
      return result
    }

    mutating func add(_ entry: Entry, asValues: Bool) {
      guard entries.last.map({ $0.set < entry.set }) ?? true else {
        entries.insert(entry, at: entries.firstIndex { $0.set > entry.set } ?? entries.count)
        shown = nil
        return
      }
      entries.append(entry)
      shown = shown.map { entry.change.applied(to: $0, asValue: asValues) }
    }

    mutating func confirm(_ change: PendingChange, by author: String?) {
      self.author = author
      let old = confirmed()
      let new = change.applied(to: old, asValue: false)
      guard old != new else { return }
      base = .known(new)
      shown = nil
    }

    mutating func submit(set: Int) -> PropertyContent? {
      guard let at = entries.firstIndex(where: { $0.set == set }) else { return nil }
      let isLast = at == entries.count - 1
      let value =
        isLast
        ? visible(asValues: true)
        : entries[...at].reduce(confirmed()) { $1.change.applied(to: $0, asValue: true) }
      entries[at].submitted = value
      return value
    }

    func submitted(set: Int) -> PropertyContent? {
      entries.first { $0.set == set }?.submitted
    }

    func counted(by set: Int) -> JSONValue? {
      guard case .operations(_, let value, _)? = entries.first(where: { $0.set == set })?.change
      else { return nil }
      return value
    }

    mutating func value(before set: Int) -> PropertyContent {
      entries.prefix { $0.set < set }.reduce(confirmed()) {
        $1.change.applied(to: $0, asValue: true)
      }
    }

    mutating func decide(set: Int, isAccepted: Bool) {
      guard let at = entries.firstIndex(where: { $0.set == set }) else { return }
      let entry = entries.remove(at: at)
      if isAccepted {
        base = .known(entry.submitted ?? entry.change.accepted(on: confirmed()))
        (late.operations, author) = ([], nil)
      }
      shown = nil
    }

    /// The first pending change is accepted as it is, which changes nothing that is visible.
    mutating func acceptFirst() {
      author = nil
      switch entries.removeFirst().change {
      case .assign(let value), .merge(let value, _, _), .putBack(let value, _, _):
        (base, late.operations) = (.known(value), [])
      case .operations(let operations, _, let range):
        late.operations += operations
        late.range = range
      }
    }

    mutating func forgetShown() { shown = nil }

    /// The root has got another UUID.
    mutating func rename(_ renaming: RootRenaming) {
      base = .known(renaming(confirmed()))
      for at in entries.indices {
        entries[at].change = entries[at].change.renaming(renaming)
        entries[at].submitted = entries[at].submitted.map { renaming($0) }
      }
      shown = nil
    }
  }

  private struct Entry {
    let set: Int
    var change: PendingChange
    /// The value that was sent, which is what counts if the set is accepted.
    var submitted: PropertyContent?
  }

  private var columns: [PropertyKey: Column] = [:]

  /// Whether the server knows no operations: then a pending change of a counter hides what others set it
  /// to, as an assignment does.
  var isOfValues = true {
    didSet {
      guard isOfValues != oldValue else { return }
      for key in columns.keys { columns[key]!.forgetShown() }
    }
  }

  var keys: some Collection<PropertyKey> { columns.keys }

  /// Whether a pending set touches the property.
  func covers(_ key: PropertyKey) -> Bool { columns[key] != nil }

  /// Whether set number `set` touches the property.
  func covers(_ key: PropertyKey, by set: Int) -> Bool {
    columns[key]?.entries.contains { $0.set == set } ?? false
  }

  /// What is visible of a property that a pending set touches.
  mutating func visible(_ key: PropertyKey) -> PropertyContent? {
    columns[key]?.visible(asValues: isOfValues)
  }

  /// Returns what is visible of a property, and keeps nothing of what it takes to find out; for tests.
  func shown(_ key: PropertyKey) -> PropertyContent? {
    var column = columns[key]
    return column?.visible(asValues: isOfValues)
  }

  /// What counts of a property that a pending set touches.
  mutating func confirmed(_ key: PropertyKey) -> PropertyContent? { columns[key]?.confirmed() }

  /// Set number `set` changes the property, which was `base` before if nothing else is known of it.
  mutating func add(
    set: Int, key: PropertyKey, _ change: PendingChange, base: @autoclosure () -> Base
  ) {
    columns[key, default: Column(base: base())]
      .add(Entry(set: set, change: change), asValues: isOfValues)
  }

  /// Others have changed the confirmed value. Does nothing for a property that is not covered.
  mutating func confirm(_ key: PropertyKey, _ change: PendingChange, by author: String? = nil) {
    columns[key]?.confirm(change, by: author)
  }

  /// Others have set the confirmed value. Does nothing for a property that is not covered.
  mutating func confirm(
    _ key: PropertyKey, value: @autoclosure () -> JSONValue, by author: String? = nil
  ) {
    columns[key]?.confirm(.assign(PropertyContent(value())), by: author)
  }

  /// Who has changed the confirmed value last while a pending set touches the property.
  func author(of key: PropertyKey) -> String? { columns[key]?.author }

  /// Who has changed the confirmed values, as far as they have said so.
  var authors: [PropertyKey: String] {
    get { columns.compactMapValues(\.author) }
    set { for (key, author) in newValue { columns[key]?.author = author } }
  }

  /// Set number `set` is decided: what it does counts at this place of the order, or is dropped.
  mutating func decide(set: Int, key: PropertyKey, isAccepted: Bool) {
    columns[key]?.decide(set: set, isAccepted: isAccepted)
  }

  /// Whether accepting set number `set` now makes no visible difference: nothing stands between the
  /// confirmed value and what it does.
  func isFirst(_ set: Int, of key: PropertyKey) -> Bool {
    guard let first = columns[key]?.entries.first else { return false }
    switch first.change {
    case .merge, .putBack: return false
    case .assign, .operations: return first.set == set && first.submitted == nil
    }
  }

  /// Set number `set`, which is the first, is accepted as it is. Forgets the property if no other set
  /// touches it, and `keeps` does not say otherwise.
  mutating func acceptFirst(of key: PropertyKey, keeping keeps: Bool) {
    columns[key]?.acceptFirst()
    if !keeps, columns[key]?.entries.isEmpty == true { columns[key] = nil }
  }

  /// The value to send for set number `set` to a server that knows no operations: an assignment as it is,
  /// a collection as it looks now with the set's change and those before it. So a collection that is sent
  /// contains whatever is known at this moment, however long the set has waited.
  mutating func submit(set: Int, key: PropertyKey) -> JSONValue? {
    columns[key]?.submit(set: set)?.json
  }

  /// Returns the value that was sent last for set number `set` to a server that knows no operations.
  func submitted(set: Int, key: PropertyKey) -> JSONValue? {
    columns[key]?.submitted(set: set)?.json
  }

  /// Returns what a counter was after set number `set`: what a server is sent that knows no operations.
  func counted(by set: Int, key: PropertyKey) -> JSONValue? { columns[key]?.counted(by: set) }

  /// What is visible of a property that a pending set touches without set number `set` and those after it.
  mutating func value(before set: Int, of key: PropertyKey) -> PropertyContent? {
    columns[key]?.value(before: set)
  }

  /// Whether the property is still here although no pending set touches it any more.
  func isSettled(_ key: PropertyKey) -> Bool { columns[key]?.entries.isEmpty == true }

  /// Forgets a property that no pending set touches any more.
  mutating func dropIfSettled(_ key: PropertyKey) {
    if isSettled(key) { columns[key] = nil }
  }

  /// The root has got another UUID. `isPlain` tells properties whose values name no models.
  mutating func rename(_ renaming: RootRenaming, isPlain: (PropertyKey) -> Bool) {
    for (key, var column) in columns {
      if !isPlain(key) { column.rename(renaming) }
      columns[key] = nil
      columns[PropertyKey(uuid: renaming(key.uuid), name: key.name)] = column
    }
  }

  /// The UUIDs in all confirmed and pending values. Cost: O(their size).
  var references: Set<UUID> {
    var result: Set<UUID> = []
    for var column in columns.values {
      column.confirmed().collect(into: &result)
      for entry in column.entries { entry.change.collect(into: &result) }
    }
    return result
  }
}
