/// The last shared values of properties with local changes that are in no change set yet. A value is shared if it
/// was in the last change set or came from another replica.
///
/// They are in ``bases``. While a call of `modify` is nested in another one, the bases of the outer calls are set
/// aside in the modification. The outermost base of a property is then its last shared value; each further base is
/// the value that the next inner call found.
extension ModelRecord {
  /// The call of `modify` that runs in the scope that collects the changes; nil if there is none.
  var modification: Modification? { originals == nil ? nil : captureTree?.scope?.modification }

  /// True if the property was changed locally since the last change set.
  func isChanged(_ index: Int) -> Bool {
    bases.contains(index) || modification?.asideLevel(of: index, in: self) != nil
  }

  /// True if any property was changed locally since the last change set.
  var hasBases: Bool {
    if !bases.isEmpty { return true }
    guard let modification else { return false }
    return modification.aside.contains { $0.bases[ObjectIdentifier(self)] != nil }
  }

  /// Returns the last shared value of a changed property. Nil for a collection, and for a property without local
  /// changes.
  func knownJSON(of index: Int) -> JSONValue? {
    var base = bases[index]
    if let modification, let level = modification.asideLevel(of: index, in: self) {
      base = modification.aside[level].base(of: index, in: self)
    }
    guard case .json(let value) = base?.value else { return nil }
    return value
  }

  /// Replaces the last shared value of a changed property by one that another replica wrote. The local value stays
  /// visible.
  ///
  /// - Parameter original: the same value in a form that keeps more than JSON does.
  func setKnown(_ value: JSONValue, of index: Int, _ original: OriginalValues.Original?) {
    let place = OriginalValues.Place(self, index)
    if let modification, let level = modification.asideLevel(of: index, in: self) {
      modification.aside[level].setBase(.json(value), of: index, in: self)
      modification.aside[level].originals[place] = original
    } else if bases.contains(index) {
      bases.set(.json(value), of: index)
      modification?.originals.values[place] = original
    }
  }

  /// Applies another replica's addition to a counter to the last shared value and to the value that each call of
  /// `modify` found. Unlike an assignment, the addition counts for all of them.
  func changeKnown(_ index: Int, _ change: (JSONValue) -> JSONValue) {
    let place = OriginalValues.Place(self, index)
    if case .json(let old) = bases[index]?.value {
      bases.set(.json(change(old)), of: index)
      modification?.originals.values[place] = nil
    }
    guard let modification else { return }
    for level in modification.aside.indices {
      guard case .json(let old) = modification.aside[level].base(of: index, in: self)?.value else {
        continue
      }
      modification.aside[level].setBase(.json(change(old)), of: index, in: self)
      modification.aside[level].originals[place] = nil
    }
  }

  /// Returns the saved contents of a changed collection whose current content is `now`: the last shared one first,
  /// then the one that each further call of `modify` found. Empty if the collection has no local changes.
  func knownLists(of index: Int, now: ModelList) -> [ModelList] {
    var result: [ModelList] = []
    if let list = bases[index]?.list(now: now) { result.append(list) }
    for level in (modification?.aside ?? []).reversed() {
      // The steps of a level lead to the content that the next inner call found.
      if let list = level.base(of: index, in: self)?.list(now: result.last ?? now) {
        result.append(list)
      }
    }
    result.reverse()
    return result
  }

  /// Returns the saved contents of a changed dictionary in the same order; empty if it has no local changes.
  func knownTables(of index: Int) -> [ModelTable] {
    var result: [ModelTable] = []
    for level in modification?.aside ?? [] {
      if case .table(let table) = level.base(of: index, in: self)?.value { result.append(table) }
    }
    if case .table(let table) = bases[index]?.value { result.append(table) }
    return result
  }

  /// Replaces the contents that ``knownTables(of:)`` returns.
  func setKnownTables(_ tables: [ModelTable], of index: Int) {
    setKnown(tables.map { .table($0) }, of: index)
  }

  /// Replaces the contents that ``knownLists(of:now:)`` returns.
  func setKnownLists(_ lists: [ModelList], of index: Int) {
    setKnown(lists.map { .list($0) }, of: index)
  }

  private func setKnown(_ values: [Base.Value], of index: Int) {
    var rest = values[...]
    if let modification {
      for level in modification.aside.indices
      where modification.aside[level].base(of: index, in: self) != nil {
        guard let value = rest.popFirst() else { return }
        modification.aside[level].setBase(value, of: index, in: self)
      }
    }
    if let value = rest.popFirst() { bases.set(value, of: index) }
  }
}
