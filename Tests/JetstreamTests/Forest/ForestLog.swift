import Foundation

@testable import Jetstream

/// Somebody on whose behalf a watcher observes.
final class ForestEar {}

/// What a watcher was told. Holds no models, as whatever a callback captures would.
final class ForestLog {
  var events: [ForestEvent] = []
  /// What collection observers were told, as the content that follows from it.
  var content: [ListKey: [Int]] = [:]
  /// What coalesced observers were told.
  var told: [String] = []
  /// The composite as it was when its observer was told that it is another one.
  var seen = ""
  /// What observers of a composite were told at once.
  var values: [(old: Int, new: Int)] = []
  /// Which rows a query has shown again.
  var updated: [Int] = []
  /// What an observer of differences has made of them.
  var rows: [Int] = []
  var mistakes: [String] = []
  /// Whether whoever is told changes something.
  var isWriter = false
  unowned let forest: Forest

  init(_ forest: Forest) { self.forest = forest }

  func note(_ event: ForestEvent) {
    events.append(event)
    forest.called(self)
  }

  func tell(_ text: String) {
    told.append(text)
    forest.called(self)
  }

  func composite(_ id: Int, _ key: CompositeKey) {
    if let plant = forest.plants[id] { seen = "\(plant[keyPath: Plant.path(key)])" }
    tell("value")
  }

  func value(_ old: Int, _ new: Int) {
    values.append((old, new))
    forest.called(self)
  }

  func property(_ id: Int, _ change: PropertyChange) {
    property(id, change.key, change.old, change.new)
  }

  func property(_ id: Int, _ key: String, _ old: Any, _ new: Any) {
    note(.property(id, key, old: forest.text(old), new: forest.text(new)))
  }

  func step(_ change: CollectionChange) {
    guard let key = ListKey(rawValue: change.key) else {
      mistakes.append("told about \(change.key)")
      return
    }
    step(key, change.kind, forest.id(of: change.model))
  }

  func step(_ key: ListKey, _ kind: CollectionChange.Kind, _ model: Int) {
    defer { forest.called(self) }
    if forest.isNested { return }
    var list = content[key] ?? []
    defer { content[key] = list }
    switch kind {
    case .insert(let place):
      if list.contains(model) || place > list.count {
        mistakes.append("\(model) inserted at \(place) of \(list)")
      } else {
        list.insert(model, at: place)
      }
    case .remove(let place):
      if place < list.count, list[place] == model {
        list.remove(at: place)
      } else {
        mistakes.append("\(model) removed at \(place) of \(list)")
      }
    case .move(let from, let to):
      if from != to, from < list.count, to < list.count, list[from] == model {
        list.insert(list.remove(at: from), at: to)
      } else {
        mistakes.append("\(model) moved from \(from) to \(to) in \(list)")
      }
    }
  }

  func update(_ update: LiveUpdate<Plant, Int>) {
    difference(update.difference)
    updated += update.updated.map { rows[$0] }
    let (deleted, inserted) = (update.deleted.count, update.inserted.count)
    if update.difference.count != deleted + inserted + 2 * update.moved.count {
      mistakes.append("the batch update is not the difference")
    }
  }

  func difference(_ difference: CollectionDifference<Plant>) {
    let changes = difference.map { change in
      switch change {
      case .insert(let offset, let plant, let other):
        CollectionDifference<Int>.Change.insert(
          offset: offset, element: forest.id(of: plant), associatedWith: other)
      case .remove(let offset, let plant, let other):
        CollectionDifference<Int>.Change.remove(
          offset: offset, element: forest.id(of: plant), associatedWith: other)
      }
    }
    defer { tell("difference") }
    if let numbers = CollectionDifference(changes), let rows = rows.applying(numbers) {
      self.rows = rows
    } else {
      mistakes.append("a difference does not fit \(rows)")
    }
  }
}
