/// What the others know of properties that were changed here and are in no change set yet.
///
/// ``bases`` have it, and within a call of `modify` that has joined another one also what the calls around
/// it have set aside: the outermost base is what the others know, the further ones are what each call has
/// found.
extension ModelRecord {
  /// Whether a property was changed here since the last change set.
  func isChanged(_ index: Int) -> Bool {
    captured.contains(index) || modification?.asideLevel(of: index, in: self) != nil
  }

  /// Whether any property was.
  var hasBases: Bool {
    if !bases.isEmpty { return true }
    guard let modification else { return false }
    return modification.aside.contains { $0.bases[ObjectIdentifier(self)]?.isEmpty == false }
  }

  /// The value that the others know of a changed property; nil for a collection, and for what was not
  /// changed.
  func knownJSON(of index: Int) -> JSONValue? {
    var base = bases.first { $0.index == index }
    if let modification, let level = modification.asideLevel(of: index, in: self) {
      base = modification.aside[level].base(of: index, in: self)
    }
    guard case .json(let value) = base?.value else { return nil }
    return value
  }

  /// Others have given a changed property another value. What calls of `modify` have made of it since
  /// stays in front.
  ///
  /// - Parameter original: tells more than JSON.
  func setKnown(_ value: JSONValue, of index: Int, _ original: Modification.Original?) {
    let place = Modification.Place(self, index)
    if let modification, let level = modification.asideLevel(of: index, in: self) {
      modification.aside[level].setBase(.json(value), of: index, in: self)
      modification.aside[level].originals[place] = original
    } else if let at = bases.firstIndex(where: { $0.index == index }) {
      bases[at].value = .json(value)
      modification?.originals[place] = original
    }
  }

  /// Others have added to a number: that is in front of nothing, but a part of what each call has found.
  func changeKnown(_ index: Int, _ change: (JSONValue) -> JSONValue) {
    let place = Modification.Place(self, index)
    if let at = bases.firstIndex(where: { $0.index == index }),
      case .json(let old) = bases[at].value
    {
      bases[at].value = .json(change(old))
      modification?.originals[place] = nil
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

  /// A changed collection, which is `now` as given, as the others know it and as each further call of
  /// `modify` that has changed it has found it. Empty if it was not changed.
  func knownLists(of index: Int, now: ModelList) -> [ModelList] {
    var result: [ModelList] = []
    if captured.contains(index), let base = bases.first(where: { $0.index == index }),
      let list = base.list(now: now)
    {
      result.append(list)
    }
    for level in (modification?.aside ?? []).reversed() {
      // Its steps lead to what the next call has found.
      if let list = level.base(of: index, in: self)?.list(now: result.last ?? now) {
        result.append(list)
      }
    }
    result.reverse()
    return result
  }

  /// Replaces all of these.
  func setKnownLists(_ lists: [ModelList], of index: Int) {
    var rest = lists[...]
    if let modification {
      for level in modification.aside.indices
      where modification.aside[level].base(of: index, in: self) != nil {
        guard let list = rest.popFirst() else { return }
        modification.aside[level].setBase(.list(list), of: index, in: self)
      }
    }
    if let list = rest.popFirst(), let at = bases.firstIndex(where: { $0.index == index }) {
      bases[at].value = .list(list)
    }
  }
}
