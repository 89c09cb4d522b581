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
  /// What an observer of differences has made of them.
  var rows: [Int] = []
  var mistakes: [String] = []
  unowned let forest: Forest

  init(_ forest: Forest) { self.forest = forest }

  func property(_ id: Int, _ change: PropertyChange) {
    property(id, change.key, change.old, change.new)
  }

  func property(_ id: Int, _ key: String, _ old: Any, _ new: Any) {
    events.append(.property(id, key, old: forest.text(old), new: forest.text(new)))
  }

  func step(_ change: CollectionChange) {
    guard let key = ListKey(rawValue: change.key) else {
      mistakes.append("told about \(change.key)")
      return
    }
    step(key, change.kind, forest.id(of: change.model))
  }

  func step(_ key: ListKey, _ kind: CollectionChange.Kind, _ model: Int) {
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
    told.append("difference")
    if let numbers = CollectionDifference(changes), let rows = rows.applying(numbers) {
      self.rows = rows
    } else {
      mistakes.append("a difference does not fit \(rows)")
    }
  }
}

/// An observer of one node of the forest, with what it has to be told.
final class ForestWatcher {
  enum Kind {
    // At once.
    case anyProperty
    case number
    case list(ListKey)
    case reference(ReferenceKey)
    case steps
    case typedSteps(ListKey)
    case parents
    case membership
    // Once a tick.
    case change([String])
    case numberValue
    case listValue(ListKey)
    case referenceValue(ReferenceKey)
    case difference(ListKey)
    case tree
    case treeAt(ListKey)
    case total
    case totalValue
  }

  let node: Int
  let kind: Kind
  let log: ForestLog
  private(set) var ear: ForestEar?
  private let isFree: Bool
  private(set) var tokens: [ObservationToken] = []
  private(set) var isOver = false
  /// Changes up to this one are none of its business.
  let since: Int
  /// For how many steps it was watched since it ended.
  var quietSteps = 0
  /// The value that it was told last.
  var last = ""

  init(_ kind: Kind, at node: Int, in forest: Forest, isFree: Bool) {
    self.kind = kind
    self.node = node
    self.isFree = isFree
    log = ForestLog(forest)
    since = forest.reference.clock
    let ear = ForestEar()
    if !isFree { self.ear = ear }
    let plant = forest.plants[node]!
    tokens = isFree ? observeFreely(plant) : observe(plant, ear)
    reset(forest.reference)
  }

  /// Counts from here on.
  func reset(_ reference: ForestReference) {
    for key in ListKey.allCases { log.content[key] = reference.nodes[node]!.list(key) }
    switch kind {
    case .difference(let key): log.rows = reference.nodes[node]!.list(key)
    default: break
    }
    last = value(reference)
  }

  func value(_ reference: ForestReference) -> String {
    switch kind {
    case .numberValue: reference.value(node, "number")
    case .listValue(let key): reference.value(node, key.rawValue)
    case .referenceValue(let key): reference.value(node, key.rawValue)
    case .difference(let key): reference.value(node, key.rawValue)
    case .total, .totalValue: "\(reference.total(node))"
    default: ""
    }
  }

  func cancel() {
    for token in tokens { token.cancel() }
    isOver = true
  }

  func releaseEar() {
    guard !isFree else { return cancel() }
    ear = nil
    isOver = true
  }

  /// The node is gone.
  func forget() { isOver = true }

  private func observe(_ plant: Plant, _ ear: ForestEar) -> [ObservationToken] {
    let (log, id) = (log, node)
    switch kind {
    case .anyProperty:
      return [plant.observeChangeImmediately(ear, handler: { log.property(id, $1) })]
    case .number:
      return [
        plant.observeChangeImmediately(ear, \.number) { _, old, new in
          log.property(id, "number", old, new)
        }
      ]
    case .list(let key):
      return [
        plant.observeChangeImmediately(ear, Plant.path(key)) { _, old, new in
          log.property(id, key.rawValue, old, new)
        }
      ]
    case .reference(let key):
      return [
        plant.observeChangeImmediately(ear, Plant.path(key)) { _, old, new in
          log.property(id, key.rawValue, old as Any, new as Any)
        }
      ]
    case .steps: return [plant.signals.onCollectionChange.listen(ear) { log.step($1) }]
    case .typedSteps(let key):
      let path = Plant.path(key)
      return [
        plant.observeCollectionAdd(ear, path) { _, model, place in
          log.step(key, .insert(at: place), log.forest.id(of: model))
        },
        plant.observeCollectionRemove(ear, path) { _, model, place in
          log.step(key, .remove(at: place), log.forest.id(of: model))
        },
        plant.observeCollectionMove(ear, path) { _, model, from, to in
          log.step(key, .move(from: from, to: to), log.forest.id(of: model))
        },
      ]
    case .parents:
      return [
        plant.observeAddedToParent(ear) { _, parent, key in
          log.events.append(.added(id, to: log.forest.id(of: parent), key))
        },
        plant.observeRemovedFromParent(ear) { _, parent, key in
          log.events.append(.removed(id, from: log.forest.id(of: parent), key))
        },
      ]
    case .membership:
      return [
        plant.observeAttach(ear) { log.events.append(.attached(id, log.forest.number(of: $1))) },
        plant.observeDetach(ear) { log.events.append(.detached(id, log.forest.number(of: $1))) },
      ]
    case .change(let keys):
      if keys.isEmpty { return [plant.observeChange(ear) { _ in log.told.append("change") }] }
      return [plant.observeChange(ear, keys: keys) { _ in log.told.append("change") }]
    case .numberValue:
      return [
        plant.observeChange(ear, \.number) { _, old, new in
          log.told.append("\(old) -> \(new)")
        }
      ]
    case .listValue(let key):
      return [
        plant.observeChange(ear, Plant.path(key)) { _, old, new in
          log.told.append("\(log.forest.text(old)) -> \(log.forest.text(new))")
        }
      ]
    case .referenceValue(let key):
      return [
        plant.observeChange(ear, Plant.path(key)) { _, old, new in
          log.told.append("\(log.forest.text(old as Any)) -> \(log.forest.text(new as Any))")
        }
      ]
    case .difference(let key):
      return [plant.observeDifference(ear, Plant.path(key)) { log.difference($1) }]
    case .tree: return [plant.observeTreeChange(ear) { _ in log.told.append("tree") }]
    case .treeAt(let key):
      return [plant.observeTreeChange(ear, path: key.rawValue) { _ in log.told.append("tree") }]
    case .total: return [plant.observeChange(ear, \.total) { _ in log.told.append("total") }]
    case .totalValue:
      return [
        plant.observeChange(ear, \.total) { _, old, new in log.told.append("\(old) -> \(new)") }
      ]
    }
  }

  /// The same on behalf of nobody.
  private func observeFreely(_ plant: Plant) -> [ObservationToken] {
    let (log, id) = (log, node)
    switch kind {
    case .anyProperty: return [plant.signals.onPropertyChange.listen { log.property(id, $0) }]
    case .number:
      return [
        plant.observeChangeImmediately(\.number) { old, new in
          log.property(id, "number", old, new)
        }
      ]
    case .list(let key):
      return [
        plant.observeChangeImmediately(Plant.path(key)) { old, new in
          log.property(id, key.rawValue, old, new)
        }
      ]
    case .reference(let key):
      return [
        plant.observeChangeImmediately(Plant.path(key)) { old, new in
          log.property(id, key.rawValue, old as Any, new as Any)
        }
      ]
    case .steps: return [plant.signals.onCollectionChange.listen { log.step($0) }]
    case .typedSteps(let key):
      let path = Plant.path(key)
      return [
        plant.observeCollectionAdd(path) { model, place in
          log.step(key, .insert(at: place), log.forest.id(of: model))
        },
        plant.observeCollectionRemove(path) { model, place in
          log.step(key, .remove(at: place), log.forest.id(of: model))
        },
        plant.observeCollectionMove(path) { model, from, to in
          log.step(key, .move(from: from, to: to), log.forest.id(of: model))
        },
      ]
    case .parents:
      return [
        plant.observeAddedToParent { parent, key in
          log.events.append(.added(id, to: log.forest.id(of: parent), key))
        },
        plant.observeRemovedFromParent { parent, key in
          log.events.append(.removed(id, from: log.forest.id(of: parent), key))
        },
      ]
    case .membership:
      return [
        plant.observeAttach { log.events.append(.attached(id, log.forest.number(of: $0))) },
        plant.observeDetach { log.events.append(.detached(id, log.forest.number(of: $0))) },
      ]
    case .change(let keys):
      if keys.isEmpty { return [plant.observeChange { log.told.append("change") }] }
      return [plant.observeChange(keys: keys) { log.told.append("change") }]
    case .numberValue:
      return [plant.observeChange(\.number) { log.told.append("\($0) -> \($1)") }]
    case .listValue(let key):
      return [
        plant.observeChange(Plant.path(key)) { old, new in
          log.told.append("\(log.forest.text(old)) -> \(log.forest.text(new))")
        }
      ]
    case .referenceValue(let key):
      return [
        plant.observeChange(Plant.path(key)) { old, new in
          log.told.append("\(log.forest.text(old as Any)) -> \(log.forest.text(new as Any))")
        }
      ]
    case .difference(let key):
      return [plant.observeDifference(Plant.path(key)) { log.difference($0) }]
    case .tree: return [plant.observeTreeChange { log.told.append("tree") }]
    case .treeAt(let key):
      return [plant.observeTreeChange(path: key.rawValue) { log.told.append("tree") }]
    case .total: return [plant.observeChange(\.total) { log.told.append("total") }]
    case .totalValue:
      return [plant.observeChange(\.total) { old, new in log.told.append("\(old) -> \(new)") }]
    }
  }
}
