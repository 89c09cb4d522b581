extension ModelRecord {
  /// The value of a property at the last change set.
  struct Base {
    enum Value {
      case json(JSONValue)
      /// A plain value, for a rollback: as JSON, and as what writes the value itself again, since JSON may keep less.
      indirect case plain(JSONValue, restore: (ModelObject) -> Void)
      /// The model of a reference, for a rollback.
      case model(ModelObject?)
      case list(ModelList)
      /// The steps since then. Unlike a copy of the list, they add no cost to the next change.
      case steps([ListOperation])
      case table(ModelTable)
    }
    let index: Int
    var value: Value

    /// The old value of a plain property or a reference as JSON. Nil for any other property.
    var json: JSONValue? {
      switch value {
      case .json(let json), .plain(let json, _): json
      case .model(let child): child?._jsonValue ?? .null
      case .list, .steps, .table: nil
      }
    }

    /// Returns the steps of a collection since then, given its content `now`. Nil for any other property.
    func steps(now: ModelList) -> [ListOperation]? {
      switch value {
      case .json, .plain, .model, .table: nil
      case .list(let old): ListDifference.operations(from: old, to: now)
      case .steps(let steps): steps
      }
    }

    /// The old content of a dictionary. Nil for any other property.
    var table: ModelTable? { if case .table(let table) = value { table } else { nil } }

    /// Returns the old content of a collection, given its content `now`. Nil for any other
    /// property.
    func list(now: ModelList) -> ModelList? {
      switch value {
      case .json, .plain, .model, .table: nil
      case .list(let list): list
      case .steps(let steps): steps.undone(on: now)
      }
    }
  }

  /// The values that properties of one model had at the last change set, of those that have changed since.
  struct Bases {
    /// The properties that have one.
    private(set) var properties = PropertySet()
    /// The values, in the order in which the properties were first changed.
    private(set) var all: ContiguousArray<Base> = []

    var isEmpty: Bool { all.isEmpty }

    @inline(__always)
    func contains(_ index: Int) -> Bool { properties.contains(index) }

    /// Returns the base of a property, given its index.
    subscript(index: Int) -> Base? { place(of: index).map { all[$0] } }

    mutating func append(_ base: Base) {
      properties.insert(base.index)
      all.append(base)
    }

    /// Replaces a value. Does nothing if the property has none.
    mutating func set(_ value: Base.Value, of index: Int) {
      if let place = place(of: index) { all[place].value = value }
    }

    /// Drops the value of a property. Returns false if it has none.
    mutating func remove(_ index: Int) -> Bool {
      guard let place = place(of: index) else { return false }
      properties.remove(index)
      all.remove(at: place)
      return true
    }

    /// Appends steps to those of a collection; `now` is its current content. A long list of steps becomes the content
    /// that they lead back to.
    mutating func append(
      _ steps: [ListOperation], of index: Int, now: @autoclosure () -> ModelList
    ) {
      guard let place = place(of: index), case .steps(var longer) = all[place].value else { return }
      // With only one reference to it, the array of steps grows in place.
      all[place].value = .steps([])
      longer.append(contentsOf: steps)
      let isLong = longer.count > 4096 && longer.count / 2 > now().count
      all[place].value = isLong ? .list(longer.undone(on: now())) : .steps(longer)
    }

    /// Returns these values together with those that were collected after them.
    func followed(by later: Bases) -> Bases {
      var result = self
      for base in later.all {
        guard let first = self[base.index] else {
          result.append(base)
          continue
        }
        guard case .steps(let steps) = first.value else { continue }
        switch base.value {
        case .steps(let then): result.set(.steps(steps + then), of: base.index)
        case .list(let list): result.set(.list(steps.undone(on: list)), of: base.index)
        case .json, .plain, .model, .table: break
        }
      }
      return result
    }

    private func place(of index: Int) -> Int? {
      contains(index) ? all.firstIndex { $0.index == index } : nil
    }
  }
}
