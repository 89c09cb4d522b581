import Foundation

@testable import Jetstream

/// Each way of observing, on behalf of somebody and on behalf of nobody.
extension ForestWatcher {
  func observe(_ plant: Plant, _ ear: ForestEar) -> [ObservationToken] {
    let (log, id) = (log, node)
    switch kind {
    case .anyProperty:
      return [plant.signals.onPropertyChange.listen(ear) { log.property(id, $1) }]
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
          log.note(.added(id, to: log.forest.id(of: parent), key))
        },
        plant.observeRemovedFromParent(ear) { _, parent, key in
          log.note(.removed(id, from: log.forest.id(of: parent), key))
        },
      ]
    case .membership:
      return [
        plant.observeAttach(ear) { log.note(.attached(id, log.forest.number(of: $1))) },
        plant.observeDetach(ear) { log.note(.detached(id, log.forest.number(of: $1))) },
      ]
    case .change(let keys):
      if keys.isEmpty {
        return [plant.observeChange(ear, isolation: here()) { _ in log.tell("change") }]
      }
      return [
        plant.observeChange(ear, of: keys.map { plant.schema[$0]! }) { _ in log.tell("change") }
      ]
    case .numberValue:
      return [
        plant.observeChange(ear, \.number, isolation: here()) { _, old, new in
          log.tell("\(old) -> \(new)")
        }
      ]
    case .listValue(let key):
      return [
        plant.observeChange(ear, Plant.path(key), isolation: here()) { _, old, new in
          log.tell("\(log.forest.text(old)) -> \(log.forest.text(new))")
        }
      ]
    case .referenceValue(let key):
      return [
        plant.observeChange(ear, Plant.path(key), isolation: here()) { _, old, new in
          log.tell("\(log.forest.text(old as Any)) -> \(log.forest.text(new as Any))")
        }
      ]
    case .difference(let key):
      return [
        plant.observeDifference(ear, Plant.path(key), isolation: here()) { log.difference($1) }
      ]
    case .tree: return [plant.observeTreeChange(ear, isolation: here()) { _ in log.tell("tree") }]
    case .treeAt(let key):
      return [
        plant.observeTreeChange(ear, path: key.rawValue, isolation: here()) { _ in log.tell("tree")
        }
      ]
    case .treeSignal:
      return [plant.signals.onTreeChange.listen(ear) { _, _ in log.tell("tree") }]
    case .composite(let key):
      return [
        plant.observeChange(ear, Plant.path(key), isolation: here()) { _ in log.composite(id, key) }
      ]
    case .compositeValue(let key):
      return [
        plant.observeChange(ear, Plant.path(key), isolation: here()) { _, old, new in
          log.tell("\(old) -> \(new)")
        }
      ]
    case .compositeAtOnce(let key):
      return [
        plant.observeChangeImmediately(ear, Plant.path(key)) { _, old, new in
          log.value(old, new)
        }
      ]
    case .rows: return [live!.observe(ear) { log.update($1) }]
    }
  }

  /// The same on behalf of nobody.
  func observeFreely(_ plant: Plant) -> [ObservationToken] {
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
          log.note(.added(id, to: log.forest.id(of: parent), key))
        },
        plant.observeRemovedFromParent { parent, key in
          log.note(.removed(id, from: log.forest.id(of: parent), key))
        },
      ]
    case .membership:
      return [
        plant.observeAttach { log.note(.attached(id, log.forest.number(of: $0))) },
        plant.observeDetach { log.note(.detached(id, log.forest.number(of: $0))) },
      ]
    case .change(let keys):
      if keys.isEmpty { return [plant.observeChange(isolation: here()) { log.tell("change") }] }
      return [plant.observeChange(of: keys.map { plant.schema[$0]! }) { log.tell("change") }]
    case .numberValue:
      return [plant.observeChange(\.number, isolation: here()) { log.tell("\($0) -> \($1)") }]
    case .listValue(let key):
      return [
        plant.observeChange(Plant.path(key), isolation: here()) { old, new in
          log.tell("\(log.forest.text(old)) -> \(log.forest.text(new))")
        }
      ]
    case .referenceValue(let key):
      return [
        plant.observeChange(Plant.path(key), isolation: here()) { old, new in
          log.tell("\(log.forest.text(old as Any)) -> \(log.forest.text(new as Any))")
        }
      ]
    case .difference(let key):
      return [plant.observeDifference(Plant.path(key), isolation: here()) { log.difference($0) }]
    case .tree: return [plant.observeTreeChange(isolation: here()) { log.tell("tree") }]
    case .treeAt(let key):
      return [plant.observeTreeChange(path: key.rawValue, isolation: here()) { log.tell("tree") }]
    case .treeSignal: return [plant.signals.onTreeChange.listen { log.tell("tree") }]
    case .composite(let key):
      return [plant.observeChange(Plant.path(key), isolation: here()) { log.composite(id, key) }]
    case .compositeValue(let key):
      return [
        plant.observeChange(Plant.path(key), isolation: here()) { old, new in
          log.tell("\(old) -> \(new)")
        }
      ]
    case .compositeAtOnce(let key):
      return [
        plant.observeChangeImmediately(Plant.path(key)) { log.value($0, $1) }
      ]
    case .rows: return [live!.observe { log.update($0) }]
    }
  }
}
