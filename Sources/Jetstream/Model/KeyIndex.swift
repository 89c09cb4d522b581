/// The keys of the models in a large ``ModelTable``.
///
/// The keys are collected when they are first asked for, in O(n). From then on the index has all keys of each model,
/// and possibly others: an entry that is removed stays in the index, and one that is put is added. Each key is looked
/// up in the table. So an index is right for all tables that were copied from each other, as long as these only lose
/// entries. A table that puts one goes on with an index of its own, which shares what was collected.
///
/// Until its keys are collected, only tables with the same entries share an index.
final class KeyIndex {
  /// An entry that was put after the keys had been collected.
  private struct Addition {
    let model: ObjectIdentifier
    let key: String
  }

  private var collected: CollectedKeys?
  private var additions: [Addition] = []
  /// The number of entries that were looked at, for tests.
  private(set) var visits = 0

  init() {}

  init(copying other: KeyIndex) {
    (collected, additions, visits) = (other.collected, other.additions, other.visits)
  }

  /// Makes an index in which nothing is collected, in place of another one.
  init(replacing other: KeyIndex) { visits = other.visits }

  /// True once the keys are collected.
  var isCollected: Bool { collected != nil }

  /// True if the keys of a table with `count` entries are better collected anew. The number of additions is limited: to
  /// copy them costs O(sqrt n) for each entry that is put, and so does collecting all keys again after that many.
  func isWorn(at count: Int) -> Bool {
    guard let collected else { return false }
    return additions.count * additions.count > max(4_096, count)
      || collected.count + additions.count > 2 * count
  }

  /// Adds an entry that was put.
  func add(_ key: String, of model: ModelObject) {
    if isCollected { additions.append(Addition(model: ObjectIdentifier(model), key: key)) }
  }

  /// Returns the keys that a model has in `table`, in order. Cost: O(sqrt n), and O(n) to collect the keys.
  func keys(of model: ModelObject, in table: ModelTable) -> [String] {
    let collected = collected ?? collect(table)
    let id = ObjectIdentifier(model)
    var keys = collected.keys(of: id)
    let added = additions.filter { $0.model == id }
    visits += keys.count + additions.count
    if !added.isEmpty { keys = Set(keys + added.map(\.key)).sorted() }
    return keys.filter { table[$0] === model }
  }

  private func collect(_ table: ModelTable) -> CollectedKeys {
    let made = CollectedKeys(table)
    visits += made.count
    collected = made
    return made
  }
}

/// The keys by model as they were at one moment. Models are named by their addresses, which others may have since.
private final class CollectedKeys {
  /// The number of entries.
  let count: Int
  private var first: [ObjectIdentifier: String]
  /// The further keys of models that have several.
  private var others: [ObjectIdentifier: [String]] = [:]

  init(_ table: ModelTable) {
    count = table.count
    first = Dictionary(minimumCapacity: table.count)
    table.forEach { key, model in
      let id = ObjectIdentifier(model)
      if first[id] == nil { first[id] = key } else { others[id, default: []].append(key) }
    }
  }

  /// Returns the keys of a model in order.
  func keys(of model: ObjectIdentifier) -> [String] {
    first[model].map { [$0] + (others[model] ?? []) } ?? []
  }
}
