/// One step in a change of a collection. The steps of a change, applied in order to the old
/// content, give the new content.
enum ListOperation {
  case insert(ModelObject, at: Int)
  case remove(ModelObject, at: Int)
  /// `to` is the index after the model was removed at `from`.
  case move(ModelObject, from: Int, to: Int)
}

extension BidirectionalCollection<ListOperation> {
  /// Returns the content before the steps, given the content after them. Cost: O(sqrt n) per step.
  func undone(on list: ModelList) -> ModelList {
    var result = list
    for operation in reversed() {
      switch operation {
      case .insert(_, let position): result.remove(at: position)
      case .remove(let model, let position): result.insert(model, at: position)
      case .move(_, let from, let to): result.move(from: to, to: from)
      }
    }
    return result
  }

  /// The models that the steps insert and those that they remove, in total.
  var net: (inserted: [ModelObject], removed: [ModelObject]) {
    var inserted: [ModelObject] = []
    var removed: [ModelObject] = []
    for operation in self {
      switch operation {
      case .insert(let model, _): inserted.append(model)
      case .remove(let model, _): removed.append(model)
      case .move: break
      }
    }
    if inserted.isEmpty || removed.isEmpty { return (inserted, removed) }
    var balance: [ModelObject: Int] = [:]
    for model in inserted { balance[model, default: 0] += 1 }
    for model in removed { balance[model, default: 0] -= 1 }
    func take(_ model: ModelObject, if sign: Int) -> Bool {
      guard balance[model] == sign else { return false }
      balance[model] = 0
      return true
    }
    return (inserted.filter { take($0, if: 1) }, removed.filter { take($0, if: -1) })
  }
}

/// Records the steps while a collection property is changed in place.
///
/// The property's `_modify` accessor opens it before it yields and closes it afterwards.
@usableFromInline
final class ListLease {
  var operations: [ListOperation] = []
  /// The index of the property that is being changed.
  fileprivate var index = 0
  /// The next open lease on the same model.
  fileprivate var next: ListLease?
  private unowned(unsafe) var storage: ModelList.Storage?
  private var remains: ContiguousArray<ModelObject> = []

  /// Opens a lease on `list` and makes its storage unique.
  init(_ list: inout ModelList) {
    let storage = list.uniqueStorage()
    precondition(
      storage.lease == nil, "A ModelArray property is changed while another change of it goes on.")
    self.storage = storage
    storage.lease = self
  }

  /// Called when the storage is released during the lease, because another list replaced it.
  func storageEnds(chunks: ContiguousArray<ContiguousArray<ModelObject>>) {
    for chunk in chunks { remains.append(contentsOf: chunk) }
    storage = nil
  }

  /// The content at the time the lease was opened. Cost: O(n).
  fileprivate var before: ModelList { operations.undone(on: reached) }

  /// The current content of the leased storage.
  private var reached: ModelList {
    storage.map { ModelList($0.chunks.joined()) } ?? ModelList(remains)
  }

  /// Ends the lease and returns the steps from the content before to `list`.
  ///
  /// Normally these are the recorded steps, at O(1). If the whole list was replaced, they are
  /// computed, at O(n log n).
  func close(on list: ModelList) -> [ListOperation] {
    let leased = storage
    if let leased, leased.lease === self { leased.lease = nil }
    if leased == nil || list.storage !== leased {
      operations = ListDifference.operations(from: before, to: list)
    }
    storage = nil
    return operations
  }
}

/// The collections of one model that are being changed in place. Until a change has ended, models
/// that it inserts are not linked, and models that it removes are not unlinked. Code that reads the
/// tree during the change, for example because another property is changed within it, must get the
/// content before.
struct OpenLeases {
  private var first: ListLease?

  var isEmpty: Bool { first == nil }

  /// Adds an open lease of property `index`.
  mutating func add(_ lease: ListLease, of index: Int) {
    lease.index = index
    lease.next = first
    first = lease
  }

  /// Removes a lease, if it was added.
  mutating func remove(_ lease: ListLease) {
    if first === lease {
      first = lease.next
    } else {
      var place = first
      while let current = place, current.next !== lease { place = current.next }
      place?.next = lease.next
    }
    lease.next = nil
  }

  /// Returns the content of property `index` before the change in progress; nil if it is not being
  /// changed.
  func content(before index: Int) -> ModelList? {
    var place = first
    while let lease = place {
      if lease.index == index { return lease.before }
      place = lease.next
    }
    return nil
  }
}

/// Computes the steps from one list to another.
enum ListDifference {
  /// Returns removals, then insertions and moves from front to back. A model whose order relative
  /// to the other remaining models is unchanged is not moved. Cost: O(n log n).
  static func operations(from old: ModelList, to new: ModelList) -> [ListOperation] {
    if old.isSame(as: new) { return [] }
    var result: [ListOperation] = []
    var current = old
    let target = new.models
    var targetIndex: [ObjectIdentifier: Int] = [:]
    targetIndex.reserveCapacity(target.count)
    for (position, model) in target.enumerated() { targetIndex[ObjectIdentifier(model)] = position }

    for (position, model) in old.models.enumerated().reversed()
    where targetIndex[ObjectIdentifier(model)] == nil {
      current.remove(at: position)
      result.append(.remove(model, at: position))
    }

    let survivors = current.models
    let order = survivors.map { targetIndex[ObjectIdentifier($0)]! }
    let inOrder = Set(LongestIncreasing.indices(of: order).map { order[$0] })
    let kept = Set(order)
    var place = 0
    for (position, model) in target.enumerated() {
      if !kept.contains(position) {
        current.insert(model, at: place)
        result.append(.insert(model, at: place))
      } else if !inOrder.contains(position) {
        let from = current.index(of: model)!
        let to = from < place ? place - 1 : place
        if from != to {
          current.move(from: from, to: to)
          result.append(.move(model, from: from, to: to))
        }
        place = to
      } else {
        place = current.index(of: model)!
      }
      place += 1
    }
    return result
  }
}
