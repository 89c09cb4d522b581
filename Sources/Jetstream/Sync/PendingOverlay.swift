import Foundation

/// The changes that pending change sets make to properties, over the confirmed values.
///
/// For each touched property the overlay holds the confirmed base and the pending changes, in the order of their
/// change sets. The visible value is the base with the pending changes applied: a pending assignment hides the base,
/// and pending operations are applied to it again. Nothing is kept for a property that no pending change set
/// touches.
struct PendingOverlay {
  /// A confirmed value. The content of a collection before the first pending change set is computed only when a
  /// remote change needs it.
  enum Base {
    case known(PropertyContent)
    case before(SealedChanges.Outcome)

    var value: PropertyContent {
      switch self {
      case .known(let value): value
      case .before(.number(let before, _)): PropertyContent(before)
      case .before(.list(let now, let steps)):
        .list(CollectionContent(steps.undone(on: now).models.map(\.uuid)))
      }
    }

    /// The number of elements of a collection, approximately; 0 for other values.
    fileprivate var count: Int {
      switch self {
      case .known(.list(let list)): list.elements.count
      case .before(.list(let now, _)): now.count
      case .known(.json), .before(.number): 0
      }
    }
  }

  private struct Column {
    private var base: Base
    /// Operations that were accepted since but are not applied to the base yet, with the range of a counter.
    private var late: (operations: [PropertyOperation], range: CounterRange) = ([], .unknown)
    private(set) var entries: [Entry] = []
    /// The values that were sent to a server that does not support operations, by the numbers of the change sets: the
    /// value becomes the base if its change set is accepted.
    private(set) var sent: [Int: PropertyContent] = [:]
    /// The visible value, once it has been computed: merging takes a step for each pending change.
    private var shown: PropertyContent?
    /// The author of the last change to the base while something is pending, if known.
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
      guard !new.isWritten(as: old) else { return }
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
      sent[set] = value
      return value
    }

    func submitted(set: Int) -> PropertyContent? { sent.isEmpty ? nil : sent[set] }

    func isFirst(_ set: Int) -> Bool {
      guard let first = entries.first, first.set == set else { return false }
      switch first.change {
      case .merge, .putBack: return false
      case .assign, .operations: return submitted(set: set) == nil
      }
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
      let submitted = sent.removeValue(forKey: set)
      if isAccepted {
        base = .known(submitted ?? entry.change.accepted(on: confirmed()))
        (late.operations, author) = ([], nil)
      }
      shown = nil
    }

    /// Accepts the first pending change unchanged, which makes no visible difference.
    mutating func acceptFirst() {
      author = nil
      switch entries.removeFirst().change {
      case .assign(let value), .merge(let value, _, _), .putBack(let value, _, _):
        (base, late.operations) = (.known(value), [])
      case .operations(let operations, _, let range):
        late.operations += operations
        late.range = range
        // There is always something pending of a property that is changed again and again.
        if late.operations.count >= max(64, base.count) { _ = confirmed() }
      }
    }

    /// The number of operations that wait to be applied to the base.
    var lateCount: Int { late.operations.count }

    /// True if the confirmed elements of a collection were computed.
    var isComputed: Bool { if case .known(.list) = base { true } else { false } }

    mutating func forgetShown() { shown = nil }

    /// Replaces the root's UUID.
    mutating func rename(_ renaming: RootRenaming) {
      base = .known(renaming(confirmed()))
      for at in entries.indices {
        entries[at].change = entries[at].change.renaming(renaming)
      }
      sent = sent.mapValues { renaming($0) }
      shown = nil
    }
  }

  private struct Entry {
    let set: Int
    var change: PendingChange
  }

  private var columns: [PropertyKey: Column] = [:]
  /// The models that pending change sets add, by UUID.
  var additions: [UUID: Addition] = [:]

  /// True if the server does not support operations: then a pending change of a counter hides remote changes of it,
  /// as an assignment does.
  var isOfValues = true {
    didSet {
      guard isOfValues != oldValue else { return }
      for key in columns.keys { columns[key]!.forgetShown() }
    }
  }

  var keys: some Collection<PropertyKey> { columns.keys }

  /// Returns true if a pending change set touches the property.
  func covers(_ key: PropertyKey) -> Bool { columns[key] != nil }

  /// Returns true if the change set with number `set` touches the property.
  func covers(_ key: PropertyKey, by set: Int) -> Bool {
    columns[key]?.entries.contains { $0.set == set } ?? false
  }

  /// Returns the visible value of a property that a pending change set touches.
  mutating func visible(_ key: PropertyKey) -> PropertyContent? {
    columns[key]?.visible(asValues: isOfValues)
  }

  /// Returns the visible value of a property without keeping the result of the computation; for tests.
  func shown(_ key: PropertyKey) -> PropertyContent? {
    var column = columns[key]
    return column?.visible(asValues: isOfValues)
  }

  /// Returns the confirmed value of a property that a pending change set touches.
  mutating func confirmed(_ key: PropertyKey) -> PropertyContent? { columns[key]?.confirmed() }

  /// Adds the change that the change set with number `set` makes to a property. `base` is the property's confirmed
  /// value, used if the property is not covered yet.
  mutating func add(
    set: Int, key: PropertyKey, _ change: PendingChange, base: @autoclosure () -> Base
  ) {
    columns[key, default: Column(base: base())]
      .add(Entry(set: set, change: change), asValues: isOfValues)
  }

  /// Applies a remote change to the confirmed value. Does nothing for a property that is not covered.
  mutating func confirm(_ key: PropertyKey, _ change: PendingChange, by author: String? = nil) {
    columns[key]?.confirm(change, by: author)
  }

  /// Replaces the confirmed value by a remote one. Does nothing for a property that is not covered.
  mutating func confirm(
    _ key: PropertyKey, value: @autoclosure () -> JSONValue, by author: String? = nil
  ) {
    columns[key]?.confirm(.assign(PropertyContent(value())), by: author)
  }

  /// Returns the author of the last change to the confirmed value while a pending change set touches the property.
  func author(of key: PropertyKey) -> String? { columns[key]?.author }

  /// The authors of the confirmed values, if known.
  var authors: [PropertyKey: String] {
    get { columns.compactMapValues(\.author) }
    set { for (key, author) in newValue { columns[key]?.author = author } }
  }

  /// Removes the change of the change set with number `set`, which is decided. If it was accepted, its result
  /// becomes the confirmed value.
  mutating func decide(set: Int, key: PropertyKey, isAccepted: Bool) {
    columns[key]?.decide(set: set, isAccepted: isAccepted)
  }

  /// Accepts the change of the change set with number `set` unchanged, if that makes no visible difference, because
  /// nothing is between the confirmed value and the change. Drops the property if no other change set touches it and
  /// `keeps` is false. Returns false if nothing was done.
  mutating func acceptIfFirst(_ set: Int, of key: PropertyKey, keeping keeps: Bool) -> Bool {
    guard let at = columns.index(forKey: key), columns.values[at].isFirst(set) else {
      return false
    }
    if !keeps, columns.values[at].entries.count == 1 {
      columns.remove(at: at)
    } else {
      columns.values[at].acceptFirst()
    }
    return true
  }

  /// Returns the value to send for the change set with number `set` to a server that does not support operations: an
  /// assignment as it is, a collection as it looks now with the change set's change and those before it. So a
  /// collection that is sent contains everything that is known at this moment, however long the change set has
  /// waited.
  mutating func submit(set: Int, key: PropertyKey) -> JSONValue? {
    columns[key]?.submit(set: set)?.json
  }

  /// Returns the value that was last sent for the change set with number `set` to a server that does not support
  /// operations.
  func submitted(set: Int, key: PropertyKey) -> JSONValue? {
    columns[key]?.submitted(set: set)?.json
  }

  /// Returns the value of a counter after the change set with number `set`, which a server that does not support
  /// operations is sent.
  func counted(by set: Int, key: PropertyKey) -> JSONValue? { columns[key]?.counted(by: set) }

  /// Returns the value of a covered property without the change set with number `set` and later ones.
  mutating func value(before set: Int, of key: PropertyKey) -> PropertyContent? {
    columns[key]?.value(before: set)
  }

  /// Returns true if a change set covers the property that is none of `guesses`.
  func isWritten(_ key: PropertyKey, besides guesses: Set<Int>) -> Bool {
    columns[key]?.entries.contains { !guesses.contains($0.set) } ?? false
  }

  /// The number of accepted operations that are not applied to confirmed values yet; for tests.
  var lateCount: Int { columns.values.reduce(0) { $0 + $1.lateCount } }

  /// The number of collections whose confirmed elements were computed; for tests.
  var computedCount: Int { columns.values.count { $0.isComputed } }

  /// Returns true if the property is still covered although no pending change set touches it any more.
  func isSettled(_ key: PropertyKey) -> Bool { columns[key]?.entries.isEmpty == true }

  /// Drops a property that no pending change set touches any more.
  mutating func dropIfSettled(_ key: PropertyKey) {
    if isSettled(key) { columns[key] = nil }
  }

  /// Replaces the root's UUID. `isPlain` returns true for properties whose values name no models.
  mutating func rename(_ renaming: RootRenaming, isPlain: (PropertyKey) -> Bool) {
    for (key, var column) in columns {
      if !isPlain(key) { column.rename(renaming) }
      columns[key] = nil
      columns[PropertyKey(uuid: renaming(key.uuid), name: key.name)] = column
    }
  }

  /// The UUIDs in all confirmed and pending values, and in those that models which are put back had, and those of all
  /// models that pending change sets change. Cost: O(their size).
  var references: Set<UUID> {
    var result: Set<UUID> = []
    for addition in additions.values {
      for (_, value) in [addition.properties, addition.bases].joined() {
        value.forEachUUID { result.insert($0) }
      }
    }
    for (name, var column) in columns {
      result.insert(name.uuid)
      column.confirmed().collect(into: &result)
      for entry in column.entries { entry.change.collect(into: &result) }
      for value in column.sent.values { value.collect(into: &result) }
    }
    return result
  }
}
