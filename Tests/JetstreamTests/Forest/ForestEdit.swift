import Foundation

@testable import Jetstream

/// A change of the plain values of one plant, done alike to the model and to the reference.
enum PlainEdit {
  case number(Int)
  case addNumber(Int)
  case title(String?)
  case counts([Int])
  case appendCount(Int)
  case appendAndRemoveCount
  case size(String, Double?)
  case spot(ForestSpot)
  case moveSpot(Int)
  case note(Int)
  case heat(Int)
  case count(Int)
  case height(Int)
  /// Sets every value to what it is.
  case same

  func perform(on plant: Plant) {
    switch self {
    case .number(let value): plant.number = value
    case .addNumber(let value): plant.number += value
    case .title(let value): plant.title = value
    case .counts(let value): plant.counts = value
    case .appendCount(let value): plant.counts.append(value)
    case .appendAndRemoveCount:
      func change(_ counts: inout [Int]) {
        counts.append(1)
        counts.removeLast()
      }
      change(&plant.counts)
    case .size(let key, let value): plant.sizes[key] = value
    case .spot(let value): plant.spot = value
    case .moveSpot(let value): plant.spot.x += value
    case .note(let value): plant.note = value
    case .heat(let value): plant.heat = value
    case .count(let value): plant.count += value
    case .height(let value): (plant as? Bush)?.height = value
    case .same:
      let old = plant.plain
      plant.number = old.number
      plant.title = old.title
      plant.counts = old.counts
      plant.sizes = old.sizes
      plant.spot = old.spot
      plant.note += 0
      plant.heat = old.heat
      plant.count = old.count
      (plant as? Bush)?.height = old.height
    }
  }

  func perform(on values: inout PlainValues, isBush: Bool) {
    switch self {
    case .number(let value): values.number = value
    case .addNumber(let value): values.number += value
    case .title(let value): values.title = value
    case .counts(let value): values.counts = value
    case .appendCount(let value): values.counts.append(value)
    case .appendAndRemoveCount, .same: break
    case .size(let key, let value): values.sizes[key] = value
    case .spot(let value): values.spot = value
    case .moveSpot(let value): values.spot.x += value
    case .note(let value): values.note = value
    case .heat(let value): values.heat = value
    case .count(let value): values.count += value
    case .height(let value): if isBush { values.height = value }
    }
  }
}

/// A change of a collection, done alike to a ``ModelArray`` and to an array of numbers.
enum ListEdit {
  case append(Int)
  case appendAll([Int])
  case insert(Int, at: Int)
  case removeAt(Int)
  case remove(Int)
  case removeAll
  case removeOdd
  case move(Int, to: Int)
  case replace(Range<Int>, [Int])
  case sort
  /// Another array in the place of this one.
  case become([Int])

  func perform(
    on list: inout ModelArray<Plant>, plant: (Int) -> Plant, number: (Plant) -> Int
  ) {
    switch self {
    case .append(let id): list.append(plant(id))
    case .appendAll(let ids): list.append(contentsOf: ids.map(plant))
    case .insert(let id, let place): list.insert(plant(id), at: place)
    case .removeAt(let place): list.remove(at: place)
    case .remove(let id): list.remove(plant(id))
    case .removeAll: list.removeAll()
    case .removeOdd: list.removeAll { !number($0).isMultiple(of: 2) }
    case .move(let from, let to): list.move(from: from, to: to)
    case .replace(let range, let ids): list.replaceSubrange(range, with: ids.map(plant))
    case .sort: list.sort { number($0) < number($1) }
    case .become(let ids): list = ModelArray(ids.map(plant))
    }
  }

  func perform(on list: inout [Int]) {
    func add(_ id: Int, at place: Int) {
      if !list.contains(id) { list.insert(id, at: place) }
    }
    switch self {
    case .append(let id): add(id, at: list.count)
    case .appendAll(let ids): for id in ids { add(id, at: list.count) }
    case .insert(let id, let place): add(id, at: place)
    case .removeAt(let place): list.remove(at: place)
    case .remove(let id): list.removeAll { $0 == id }
    case .removeAll: list = []
    case .removeOdd: list.removeAll { !$0.isMultiple(of: 2) }
    case .move(let from, let to): list.insert(list.remove(at: from), at: to)
    case .replace(let range, let ids):
      list.removeSubrange(range)
      var place = range.lowerBound
      for id in ids where !list.contains(id) {
        list.insert(id, at: place)
        place += 1
      }
    case .sort: list.sort()
    case .become(let ids):
      list = []
      for id in ids { add(id, at: list.count) }
    }
  }
}
