import Foundation
import Jetstream

/// The differences that a change set would make to a scope.
///
/// They are those between two states, not those that the fragments name: a model that a removal detaches is deleted with
/// all that only it has led to, one that comes back is created, and a value that stays the same is not updated.
///
/// Notes about a model are kept with the model, and not in tables: each model is looked up once.
struct Differences {
  let scope: TentativeScope
  /// The differences but for those of ``nextDeparture(unless:)``; those of models that come in are the last ones.
  private(set) var all: [Difference] = []
  /// The index of the first model that leaves, and of the first one that comes in.
  private(set) var firstDeparture = 0
  private(set) var firstCreation = 0
  /// The fragments that put models of unknown classes into properties, or take them out; no rule can speak of these.
  private(set) var unknown: [Int] = []
  /// The models that properties begin to hold, and those that they cease to, each once.
  private var gained: [TentativeModel] = []
  var lost: [TentativeModel] = []
  /// The models below those that leave, which may leave with them.
  var below: [(model: TentativeModel, fragments: FragmentIndices)] = []
  private var stage = Stage.writes
  /// The place of the write that is looked at next: that of its model, and its own among those of the model.
  private var place = (model: 0, write: 0)
  /// The operations of that write, if only a part of them was looked at.
  private var open: OpenOperations?
  /// The models that come in, and those below them of which that is not known yet.
  private var arrivals: [Difference] = []
  private var arriving: [(model: TentativeModel, fragments: FragmentIndices)] = []

  /// The stages of finding differences, in their order.
  private enum Stage { case writes, arrivals, departures, creations, none }

  /// The operations of a write on a collection, of which a part was looked at.
  private struct OpenOperations {
    let write: TentativeModel.Write
    /// The models that they are about, each once.
    var children: [TentativeModel] = []
    /// The number of operations, and then of models, that were looked at.
    var readCount = 0
    var notedCount = 0

    init(write: TentativeModel.Write) { self.write = write }
  }

  /// Makes differences of which none was found yet; see ``find(_:)``.
  init(in scope: TentativeScope) {
    precondition(scope.hasRead, "The scope should know all of its change set.")
    self.scope = scope
    all.reserveCapacity(scope.writtenCount)
  }

  /// Goes on with finding the differences. Returns true once all were found.
  mutating func find(_ budget: inout WorkBudget) -> Bool {
    while stage != .none {
      switch stage {
      case .writes:
        guard noteWrites(&budget) else { return false }
        arriving = gained.map { ($0, FragmentIndices(joining: $0.gained.lazy.map(\.fragments))) }
        stage = .arrivals
      case .arrivals:
        guard findArrivals(&budget) else { return false }
        firstDeparture = all.count
        stage = .departures
      case .departures:
        // Models that would come in below one that leaves do not come in.
        while !arrivals.isEmpty {
          if budget.isSpent { return false }
          budget.take(1)
          guard let departure = nextDeparture() else { break }
          all.append(departure)
        }
        firstCreation = all.count
        stage = .creations
      case .creations:
        if budget.isSpent { return false }
        budget.take(arrivals.count)
        if firstCreation == firstDeparture {
          all += arrivals
        } else {
          for arrival in arrivals where isReachable(arrival.model) { all.append(arrival) }
        }
        arrivals = []
        stage = .none
      case .none: break
      }
    }
    return true
  }

  private mutating func noteWrites(_ budget: inout WorkBudget) -> Bool {
    while place.model < scope.writtenCount {
      let model = scope.written(at: place.model)
      while place.write < model.writeCount {
        if open == nil {
          if budget.isSpent { return false }
          budget.take(1)
          note(at: place.write, of: model)
        }
        if open != nil {
          guard noteOperations(of: model, &budget) else { return false }
        }
        place.write += 1
      }
      place = (place.model + 1, 0)
    }
    return true
  }

  // MARK: Values

  /// Notes what the write at a place of a model does.
  private mutating func note(at place: Int, of model: TentativeModel) {
    let property = model.property(at: place)
    switch property.kind {
    case .plain:
      if model.current == nil { return }
      if model.changesValue(at: place) { all.append(Difference(updating: model, at: place)) }
    case .reference:
      let write = model.write(at: place)
      let old = TentativeModel.model(in: model.isShared ? model.oldValue(of: property) : .null)
      let new = TentativeModel.model(in: model.newValue(at: place))
      if old == new { return }
      let isEntry = property.entryKey != nil
      if !isEntry, model.current != nil { add(.updated(property), to: model, write) }
      if !model.isShared { return }
      let (left, came) = (child(old, write), child(new, write))
      if isEntry, let left { add(.removed(left, property), to: model, write) }
      if isEntry, let came { add(.inserted(came, property), to: model, write) }
      let holding = holding(of: write, by: model)
      if let left { noteLoss(of: left, holding) }
      if let came { noteGain(of: came, holding) }
    case .collection:
      // The children of a model that is not in the scope come in with it.
      if model.isShared { noteCollection(model.write(at: place), at: place, of: model) }
    case .dictionary: return
    }
  }

  private mutating func noteCollection(
    _ write: TentativeModel.Write, at place: Int, of model: TentativeModel
  ) {
    if write.assigned == nil {
      open = OpenOperations(write: write)
      return
    }
    let old = CollectionContent(model.oldValue(of: write.property)) ?? CollectionContent()
    let new = CollectionContent(model.newValue(at: place)) ?? CollectionContent()
    let holding = holding(of: write, by: model)
    for operation in old.operations(to: new) {
      guard let child = child(operation.model, write) else { continue }
      switch operation {
      case .insert: insert(child, holding, write, of: model)
      case .remove: remove(child, holding, write, of: model)
      case .move: move(child, write, of: model)
      case .add: break
      }
    }
  }

  /// Notes operations without a look at the other elements. Returns true once all are noted.
  private mutating func noteOperations(
    of model: TentativeModel, _ budget: inout WorkBudget
  ) -> Bool {
    var open = self.open.take()!
    let (write, count) = (open.write, open.write.operations.count)
    if open.readCount == 0 { open.children.reserveCapacity(count) }
    let read = budget.take(from: open.readCount, to: count)
    for operation in write.operations[read] {
      if let child = note(operation, of: write, by: model) { open.children.append(child) }
    }
    open.readCount = read.upperBound
    let noted = budget.take(from: open.notedCount, to: open.children.count)
    if open.readCount == count {
      let holding = holding(of: write, by: model)
      for child in open.children[noted] {
        let stay = child.stay!
        child.stay = nil
        switch (stay.isBefore, stay.isAfter, stay.isMoved) {
        case (false, true, _): insert(child, holding, write, of: model)
        case (true, false, _): remove(child, holding, write, of: model)
        case (true, true, true): move(child, write, of: model)
        default: break
        }
      }
      open.notedCount = noted.upperBound
      if open.notedCount == open.children.count { return true }
    }
    self.open = open
    return false
  }

  /// Notes what an operation does to the presence of a model. Returns the model if it is the first operation on it.
  private mutating func note(
    _ operation: PropertyOperation, of write: TentativeModel.Write, by model: TentativeModel
  ) -> TentativeModel? {
    guard let uuid = operation.model else { return nil }
    if scope.isUnknown(uuid) {
      unknown += write.fragments
      return nil
    }
    guard let child = scope[uuid] else { return nil }
    let known = child.stay
    var stay: TentativeModel.Stay
    if let known {
      stay = known
    } else {
      let isHeld = scope.isHeld(child, by: model.uuid, write.property.wireName)
      stay = TentativeModel.Stay(isBefore: isHeld, isAfter: isHeld)
    }
    switch operation {
    case .insert: (stay.isAfter, stay.isMoved) = (true, true)
    case .remove: stay.isAfter = false
    case .move: if stay.isAfter { stay.isMoved = true }
    case .add: break
    }
    child.stay = stay
    return known == nil ? child : nil
  }

  private mutating func insert(
    _ child: TentativeModel, _ holding: Holdings, _ write: TentativeModel.Write,
    of model: TentativeModel
  ) {
    add(.inserted(child, write.property), to: model, write)
    noteGain(of: child, holding)
  }

  private mutating func remove(
    _ child: TentativeModel, _ holding: Holdings, _ write: TentativeModel.Write,
    of model: TentativeModel
  ) {
    add(.removed(child, write.property), to: model, write)
    noteLoss(of: child, holding)
  }

  private mutating func move(
    _ child: TentativeModel, _ write: TentativeModel.Write, of model: TentativeModel
  ) {
    add(.moved(child, write.property), to: model, write)
  }

  private mutating func add(
    _ kind: Difference.Kind, to model: TentativeModel, _ write: TentativeModel.Write
  ) {
    all.append(Difference(kind: kind, model: model, fragments: write.fragments))
  }

  /// Returns a model that a property holds, or is to hold. Nil if it is of an unknown class, which is noted.
  private mutating func child(_ uuid: UUID?, _ write: TentativeModel.Write) -> TentativeModel? {
    guard let uuid else { return nil }
    if let child = scope[uuid] { return child }
    if scope.isUnknown(uuid) { unknown += write.fragments }
    return nil
  }

  // MARK: Coming and going

  /// One property, in an array that all models share which it begins to hold, or ceases to.
  private typealias Holdings = [TentativeModel.Holding]

  private mutating func noteGain(of child: TentativeModel, _ holding: Holdings) {
    if child.gained.isEmpty {
      gained.append(child)
      child.gained = holding
    } else {
      child.gained += holding
    }
  }

  private mutating func noteLoss(of child: TentativeModel, _ holding: Holdings) {
    if child.lost.isEmpty {
      lost.append(child)
      child.lost = holding
    } else {
      child.lost += holding
    }
  }

  private func holding(of write: TentativeModel.Write, by model: TentativeModel) -> Holdings {
    let holder = PropertyKey(uuid: model.uuid, name: write.property.wireName)
    return [TentativeModel.Holding(holder: holder, fragments: write.fragments)]
  }

  /// Finds the models that come in: those that begin to be held, and those below them. Returns true once all are found.
  private mutating func findArrivals(_ budget: inout WorkBudget) -> Bool {
    while !arriving.isEmpty {
      if budget.isSpent { return false }
      budget.take(1)
      let (model, fragments) = arriving.removeLast()
      if model.isShared || model.isArriving { continue }
      model.isArriving = true
      let own = model.addition.map { FragmentIndices($0) } ?? fragments
      arrivals.append(Difference(kind: .created, model: model, fragments: own))
      model.forEachNewChild { uuid in
        guard let child = scope[uuid] else {
          if scope.isUnknown(uuid) { unknown += own }
          return
        }
        let holder = PropertyKey(uuid: model.uuid, name: "")
        child.gained.append(TentativeModel.Holding(holder: holder, fragments: own))
        arriving.append((child, own))
      }
    }
    return true
  }
}
