import Foundation

extension ChangeSet {
  /// The fragments of a change set, with those that undo it.
  struct Content: Sendable, Hashable {
    let fragments: [SyncFragment]
    let undo: Undo

    /// The fragments that undo the change set. Cost: O(n) in the fragments.
    var undoing: [SyncFragment] { undo.changes(of: fragments) }

    static func == (a: Content, b: Content) -> Bool {
      a.fragments == b.fragments && a.undoing == b.undoing
    }

    func hash(into hasher: inout Hasher) { hasher.combine(fragments) }
  }

  /// The content that undoes a change set.
  enum Undo: Sendable {
    /// The values before the change set, of the properties that its changes assign, in the order of the fragments:
    /// everything else follows from these fragments. For change sets whose changes have no operations.
    case values([JSONValue])
    case fragments([SyncFragment])

    /// Returns the fragments that undo the changes among `fragments`, the content of the change set.
    func changes(of fragments: [SyncFragment]) -> [SyncFragment] {
      guard case .values(let values) = self else {
        if case .fragments(let undo) = self { return undo }
        return []
      }
      var undo: [SyncFragment] = []
      var place = 0
      for fragment in fragments where fragment.kind == .change {
        var change = fragment
        for (at, (key, value)) in fragment.properties.enumerated() {
          change.properties[key] = values[place + at]
          if fragment.bases[key] != nil { change.bases[key] = value }
        }
        place += fragment.properties.count
        undo.append(change)
      }
      return undo
    }

    /// Returns the content with the operations that take back those of the changes among `fragments`.
    func adding(
      _ operations: [(model: UUID, operations: PropertyOperations)], to fragments: [SyncFragment]
    ) -> Undo {
      let byModel = Dictionary(
        operations.map { ($0.model, $0.operations) }, uniquingKeysWith: { first, _ in first })
      var undo = changes(of: fragments)
      for at in undo.indices { undo[at].operations = byModel[undo[at].uuid] ?? [:] }
      return .fragments(undo)
    }
  }

  /// The values before a change set, for going through its changes in order.
  struct OldValues {
    private let values: [JSONValue]
    private var place = 0
    private let byModel: [UUID: JSONObject]

    fileprivate init(_ undo: Undo) {
      switch undo {
      case .values(let values): (self.values, byModel) = (values, [:])
      case .fragments(let fragments):
        values = []
        byModel = Dictionary(
          fragments.lazy.filter { $0.kind == .change }.map { ($0.uuid, $0.properties) },
          uniquingKeysWith: { _, last in last })
      }
    }

    /// Returns the value before the change set of the next property that a change assigns.
    mutating func next(_ key: String, of fragment: SyncFragment) -> JSONValue {
      guard place < values.count else { return byModel[fragment.uuid]?[key] ?? .null }
      place += 1
      return values[place - 1]
    }
  }

  /// The values before the change set, of the properties that its changes assign.
  var oldValues: OldValues { OldValues(content.undo) }
}

extension ChangeSet {
  /// The part that a change set has in an ``UndoHistory``.
  package enum Purpose: Sendable, Hashable {
    /// The change set is a change of its own.
    case edit
    /// The change set undoes the one with this id.
    case undo(UUID)
    /// The change set redoes what the one with this id has undone.
    case redo(UUID)
  }

  /// The labels of a change set, which most change sets have none of.
  struct Labels: Sendable, Hashable {
    var author: String?
    var message: String?
    var procedure: String?
    var arguments: JSONValue?
    var isForClient = false
    var purpose = Purpose.edit
  }

  /// The labels where there are any: most change sets have room for a pointer only.
  indirect enum LabelBox: Sendable, Hashable {
    case none
    case some(Labels)

    var labels: Labels {
      get { if case .some(let labels) = self { labels } else { Labels() } }
      set { self = newValue == Labels() ? .none : .some(newValue) }
    }
  }
}

extension ChangeSet {
  /// Calls `body` with the models that the change set changes, and with every UUID in their values before and after it.
  func forEachName(_ body: (UUID) -> Void) {
    for fragment in [fragments, undo].joined() {
      body(fragment.uuid)
      fragment.forEachHeldUUID(body)
    }
  }
}

extension SyncFragment {
  /// Calls `body` with the models that the fragment puts somewhere: every UUID in a value, and the models of insertions.
  func forEachHeldUUID(_ body: (UUID) -> Void) {
    for (_, value) in properties { value.forEachUUID(body) }
    for entry in operations {
      for case .insert(let uuid, _) in entry.operations { body(uuid) }
    }
  }
}
