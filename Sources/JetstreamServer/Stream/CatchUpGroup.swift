import Foundation
import Jetstream

/// Change sets that a session which is behind is sent in one frame, without the values that later ones of them replace.
///
/// A client applies the messages of one frame as one change, so that its observers see only what all of them lead to. A
/// value of a plain property, which a change set assigns, is left out if a later change set of the group assigns the same
/// property. Each change set is still sent, if only for its sequence.
///
/// The first value that a group has of a property stays if its author, or the author of the value that replaces it, may
/// not have seen the receiver's own last change set. From that value the receiver tells whether another client has
/// overwritten its own without having seen it; see ``OwnWrites``. A group has no change sets of the receiver.
struct CatchUpGroup {
  /// A change set, and what is left of it.
  private struct Entry {
    let item: StreamItem
    var fragments: [SyncFragment]
    /// True if values were left out.
    var isReduced = false

    init(_ item: StreamItem) { (self.item, fragments) = (item, item.fragments) }
  }

  /// The last value that the group has of a property.
  private struct Value {
    /// The change set, by its position in the group, and the fragment, by its position in the change set.
    let entry: Int
    let fragment: Int
    /// The approximate number of bytes on the wire.
    let size: Int
    /// True if the author may not have seen the receiver's own last change set.
    let isBlind: Bool
    /// True if the group has an earlier value, which stays.
    var isBehindFirst = false
  }

  private let room: StreamAmount
  /// Returns the sequence of the receiver's own last change set in front of the group. Mostly it is of no interest, and
  /// looking for it takes time.
  private let findOwn: () -> Int
  private lazy var own = findOwn()
  private let schema: (SyncFragment) -> ClassSchema?
  private var entries: [Entry] = []
  private var values: [PropertyKey: Value] = [:]
  /// The approximate number of bytes that are left of all change sets.
  private(set) var bytes = 0

  /// - Parameters:
  ///   - room: the most that may be left of the change sets. The first always fits.
  ///   - own: returns the sequence of the receiver's own last change set in front of the group.
  ///   - schema: returns the class of the model that a fragment is of; nil if it is not known.
  init(
    room: StreamAmount, own: @escaping () -> Int,
    schema: @escaping (SyncFragment) -> ClassSchema?
  ) {
    (self.room, findOwn, self.schema) = (room, own, schema)
  }

  /// The number of change sets.
  var count: Int { entries.count }

  /// The sequence of the last change set.
  var last: Int { entries[count - 1].item.sequence }

  /// The change sets, whole.
  var items: [StreamItem] { entries.map(\.item) }

  /// True if values were left out.
  var isReduced: Bool { entries.contains(where: \.isReduced) }

  /// Adds the change set that follows the last one, and leaves out the values that it replaces.
  ///
  /// - Returns: false, having done nothing, if the group would become too large.
  mutating func append(_ item: StreamItem) -> Bool {
    var isBlind = false
    if let seen = item.origin.seen { isBlind = seen < own }
    let written = plainValues(of: item, isBlind: isBlind)
    let replaced = written.compactMap { name, value in
      values[name].flatMap { $0.isBehindFirst || !($0.isBlind || isBlind) ? (name, $0) : nil }
    }
    let size = item.message(scopeIndex: 0).roughSize
    let inFront = replaced.reduce(bytes) { $0 - $1.1.size }
    guard entries.isEmpty || (count < room.sets && inFront + size <= room.bytes) else {
      return false
    }
    drop(replaced)
    let dropped = Set(replaced.lazy.map(\.0))
    for (name, var value) in written {
      if let last = values[name] {
        value.isBehindFirst = last.isBehindFirst || !dropped.contains(name)
      }
      values[name] = value
    }
    for fragment in item.fragments where fragment.kind == .add {
      // Values that a model had before it came back stay.
      for member in fragment.properties.members {
        values[PropertyKey(uuid: fragment.uuid, name: member.key)] = nil
      }
    }
    entries.append(Entry(item))
    bytes = inFront + size
    return true
  }

  /// Leaves values out, those of one fragment at once: each removal takes time in proportion to the fragment.
  private mutating func drop(_ replaced: [(PropertyKey, Value)]) {
    var names: [Int: [Int: Set<String>]] = [:]
    for (key, value) in replaced {
      names[value.entry, default: [:]][value.fragment, default: []].insert(key.name)
    }
    for (entry, fragments) in names {
      for (fragment, names) in fragments {
        entries[entry].fragments[fragment].properties.removeAll { key, _ in names.contains(key) }
      }
      entries[entry].isReduced = true
    }
  }

  /// Returns the values of plain properties that a change set assigns, the last one of each.
  private func plainValues(of item: StreamItem, isBlind: Bool) -> [PropertyKey: Value] {
    var found: [PropertyKey: Value] = [:]
    for (at, fragment) in item.fragments.enumerated() where fragment.kind == .change {
      guard !fragment.properties.isEmpty, let schema = schema(fragment) else { continue }
      for member in fragment.properties.members {
        guard let index = schema.index(ofDeclared: member.key),
          schema.properties[index].isReplaceable, fragment.bases[member.key] == nil
        else { continue }
        found[PropertyKey(uuid: fragment.uuid, name: member.key)] = Value(
          entry: count, fragment: at, size: 4 + member.key.utf8.count + member.value.roughSize,
          isBlind: isBlind)
      }
    }
    return found
  }

  /// Returns the messages that tell what is left of the change sets, in order.
  func messages(scopeIndex: Int) -> [Message] {
    entries.map { entry in
      guard entry.isReduced else { return entry.item.message(scopeIndex: scopeIndex) }
      let left = entry.fragments.filter {
        $0.kind == .add || !$0.properties.isEmpty || !$0.operations.isEmpty
      }
      var message = ScopeSync(scopeIndex: scopeIndex, fragments: left)
      (message.sequence, message.origin) = (entry.item.sequence, entry.item.origin)
      return .scopeSync(message)
    }
  }
}

extension PropertySchema {
  /// True if a value that is assigned to the property says all of it, and names no model.
  fileprivate var isReplaceable: Bool {
    guard kind == .plain, isSynced, !isCounter, mergeRule == nil else { return false }
    if case .weakReference = type { return false }
    return true
  }
}
