/// Describes the changes that a tree observer is notified of: those at or below certain properties,
/// which are reached over a path of properties.
struct TreePattern {
  /// The properties at each step of the path. A subclass has its inherited properties at the same
  /// indices, so these fit every object on the path.
  let steps: [PropertySet]

  /// Makes a pattern for properties of the observed model itself.
  init(_ properties: [Int]) { steps = [PropertySet(properties)] }

  /// Makes a pattern from property names separated by dots. Traps unless each name exists in the
  /// class that the property before it is declared with.
  init(path: String, in schema: ModelSchema) {
    var schema = schema
    var steps: [PropertySet] = []
    let names = path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    for (place, name) in names.enumerated() {
      let index = schema.indices(of: [name])[0]
      steps.append(PropertySet([index]))
      if place == names.count - 1 { break }
      guard let next = schema.properties[index].access.valueType.heldClass else {
        preconditionFailure(
          "\(schema.wireName).\(name) holds no models, so there is nothing called "
            + "\"\(names[place + 1])\" below it, as the path \"\(path)\" has it.")
      }
      precondition(
        next != ModelObject.self,
        "\(schema.wireName).\(name) is declared to hold any ModelObject, so there is nothing called "
          + "\"\(names[place + 1])\" below it, as the path \"\(path)\" has it.")
      schema = ModelSchema.of(next)
    }
    self.steps = steps
  }
}

/// The changed models of a tick with all their ancestors: the part of the tree in which the
/// patterns of tree observers are matched. Made only if there are patterns.
///
/// Cost: O(n) for n ancestors of the changed models, and the same again for each step of a pattern.
struct PatternSearch {
  private struct Place {
    let record: ModelRecord
    /// The moment of the latest change of the model or of any model below it.
    let changedAt: Int
    /// Changed properties of the model itself; `dirtyAt` is the moment of the last such change.
    var dirty = PropertySet()
    var dirtyAt = 0
    /// The models below that are places as well, with the properties that hold them.
    var below: ContiguousArray<(index: Int, place: Int)> = []
  }

  private var places: ContiguousArray<Place> = []
  private var numbers: [ObjectIdentifier: Int] = [:]

  init(_ work: DirtyModels.Work) {
    // The latest change comes first, so that each ancestor gets its latest change.
    var stack = work.map { (record: $0.0, changedAt: $0.0.changedAt) }
    stack.sort { $0.changedAt < $1.changedAt }
    while let (record, changedAt) = stack.popLast() {
      let key = ObjectIdentifier(record)
      guard numbers[key] == nil else { continue }
      numbers[key] = places.count
      places.append(Place(record: record, changedAt: changedAt))
      record.parents.forEach { stack.append(($0.parent, changedAt)) }
    }
    for (record, dirty) in work {
      guard let number = numbers[ObjectIdentifier(record)] else { continue }
      places[number].dirty = dirty
      places[number].dirtyAt = record.changedAt
    }
    for (number, place) in places.enumerated() {
      place.record.parents.forEach { link in
        guard let above = numbers[ObjectIdentifier(link.parent)] else { return }
        places[above].below.append((link.index, number))
      }
    }
  }

  /// Returns true if a change below `record` at `moment` or later matches the pattern.
  func finds(_ pattern: TreePattern, below record: ModelRecord, since moment: Int) -> Bool {
    struct State: Hashable {
      let place: Int
      let step: Int
    }
    guard let start = numbers[ObjectIdentifier(record)] else { return false }
    var open = [State(place: start, step: 0)]
    var visited: Set<State> = []
    while let state = open.popLast() {
      let place = places[state.place]
      let properties = pattern.steps[state.step]
      if place.dirtyAt >= moment, place.dirty.intersects(properties) { return true }
      for (index, lower) in place.below where properties.contains(index) {
        if state.step == pattern.steps.count - 1 {
          // Every place has a change at or below it.
          if places[lower].changedAt >= moment { return true }
        } else {
          let next = State(place: lower, step: state.step + 1)
          if visited.insert(next).inserted { open.append(next) }
        }
      }
    }
    return false
  }
}
