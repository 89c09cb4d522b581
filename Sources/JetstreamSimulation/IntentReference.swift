/// A reference for what accepted change sets mean, in plain dictionaries: the last value that was written to
/// each property, and for each collection the models that were put in and those that were taken out. It is
/// built from the submitted change sets and the server's replies, in their order, and never from the state that
/// the server sends.
struct IntentReference {
  typealias Key = StreamReference.Key

  private var values: [Key: PlainJSON] = [:]
  private var members: [Key: [String: Bool]] = [:]
  private var sums: [Key: Int] = [:]
  /// The properties that were written since the last check.
  private var touched: Set<Key> = []
  /// The models that were put into each collection since the last check, and not taken out again.
  private var inserted: [Key: Set<String>] = [:]
  private var authors: [Key: SubmittedSet] = [:]
  /// The steps that the server has left out since the last check. The model whose property they would have
  /// changed, the holder, must be gone.
  private var leftOut: [(holder: String, words: String)] = []
  private let countersAddUp: Bool
  private let collectionsKeepIntents: Bool
  /// True if the server gives properties that clients have set the values of ``SimulatedRules``.
  private let isGuarded: Bool

  init(_ promises: SimulationConfiguration.Promises, isGuarded: Bool = false) {
    self.isGuarded = isGuarded
    countersAddUp = promises.contains(.countersAddUp)
    collectionsKeepIntents = promises.contains(.collectionsKeepIntents)
  }

  /// Takes the values of the first full state.
  mutating func begin(
    with stream: StreamReference, _ kinds: (String) -> [String: PropertyKind]
  ) {
    for (uuid, model) in stream.models {
      let kinds = kinds(model.className)
      for (name, value) in model.properties {
        let key = Key(uuid: uuid, name: name)
        switch kinds[name] {
        case .collection:
          members[key] = Dictionary(uniqueKeysWithValues: value.texts.map { ($0, true) })
        case .counter where countersAddUp: sums[key] = value.whole ?? 0
        default: values[key] = value
        }
      }
    }
  }

  /// Applies an accepted fragment.
  ///
  /// - Parameters:
  ///   - sent: the values that were sent.
  ///   - bases: the earlier values of merged properties, as the maker of the change set knew them.
  ///   - name: returns the UUID by which the stream knows a model of the intent.
  mutating func accept(
    _ intent: SubmittedSet.Intent, sent: [String: PlainJSON], bases: [String: PlainJSON],
    of set: SubmittedSet,
    name: (String) -> String, _ kinds: [String: PropertyKind]
  ) {
    let uuid = name(intent.uuid)
    let sent = sent.reduce(into: [:]) { $0[$1.key] = revised($1.value, of: $1.key, by: set) }
    if !leftOut.isEmpty {
      // A holder that was gone and is put back before the next check does not have the elements that were left
      // out.
      let named = intent.elements.union(sent.values.compactMap(\.text)).map(name)
      leftOut.removeAll { named.contains($0.holder) }
    }
    for (property, kind) in kinds {
      if kind == .entries {
        if intent.isAddition {
          // An entry that others have put into a model that is gone does not come back with it, unless the addition says
          // what its maker knew; the reference does not know whether the model is gone.
          values = values.filter { key, _ in
            key.uuid != uuid || sent[key.name] != nil
              || !PropertyKind.isEntry(key.name, of: property)
          }
        }
        for (entry, value) in sent where PropertyKind.isEntry(entry, of: property) {
          let key = Key(uuid: uuid, name: entry)
          touched.insert(key)
          authors[key] = set
          if let known = intent.known[entry] {
            putBack(value, known: known, key, .reference, of: set, name: name)
          } else {
            values[key] = value
          }
        }
        continue
      }
      let key = Key(uuid: uuid, name: property)
      let steps = intent.operations[property]?.elements ?? []
      let isNamed = sent[property] != nil || !steps.isEmpty
      guard isNamed || intent.isAddition else { continue }
      touched.insert(key)
      authors[key] = set
      if let known = intent.known[property] {
        let value = revised(intent.values[property] ?? .null, of: property, by: set)
        putBack(value, known: known, key, kind, of: set, name: name)
        continue
      }
      switch kind {
      case .collection:
        if intent.isAddition || steps.isEmpty {
          // Elements that others have put in stay; the reference does not know them any more.
          members[key] = nil
          // A model that is gone when it is added anew has the elements that the addition names, and the reference
          // does not know whether it is gone. An assignment of version 1 may take out what was just put in.
          if intent.isAddition || !collectionsKeepIntents { inserted[key] = nil }
          for element in (intent.values[property] ?? .null).texts {
            put(name(element), into: key, of: set)
          }
        }
        for step in steps {
          if let element = step["insert"]?.text {
            put(name(element), into: key, of: set)
          } else if let element = step["remove"]?.text {
            members[key, default: [:]][name(element)] = false
            inserted[key]?.remove(name(element))
          }
        }
      case .counter(let range) where countersAddUp:
        // The reference does not know with which value a removed model came back.
        if let sum = sums[key] {
          sums[key] = steps.reduce(sum) { sum, step in
            min(max(sum + (step["add"]?.whole ?? 0), range.lowerBound), range.upperBound)
          }
        }
        if steps.isEmpty { sums[key] = sent[property]?.whole }
      case .merged(let rule):
        guard let mine = sent[property], let base = bases[property] else {
          let value = sent[property]
          values[key] = intent.isAddition && (value ?? .null) == .null ? nil : value
          continue
        }
        if let theirs = values[key], theirs != base {
          values[key] = PlainJSON.merged(rule, base: base, theirs: theirs, mine: mine)
        } else if values[key] != nil {
          values[key] = mine
        }
      case .plain, .counter, .reference, .entries:
        // In an addition, null may stand for the default.
        let value = sent[property]
        values[key] = intent.isAddition && (value ?? .null) == .null ? nil : value
      }
    }
  }

  /// Returns the value that a server with rules makes of one that a client has set.
  private func revised(_ value: PlainJSON, of property: String, by set: SubmittedSet) -> PlainJSON {
    guard isGuarded, set.client != nil, property == SimulatedRules.revisedProperty,
      let text = value.text
    else { return value }
    return .string(SimulatedRules.revised(text))
  }

  /// Applies the addition of a model that a client puts back, if the client knew the value `known` of a
  /// property. A property that the client has not changed is as others have left it, which the reference does
  /// not check: the server may have forgotten the model.
  private mutating func putBack(
    _ value: PlainJSON, known: PlainJSON, _ key: Key, _ kind: PropertyKind, of set: SubmittedSet,
    name: (String) -> String
  ) {
    switch kind {
    case .collection:
      members[key] = nil
      for element in Set(value.texts).subtracting(known.texts) {
        put(name(element), into: key, of: set)
      }
    // The client's additions to a counter are added to the current number, also where changes are sent as values.
    case .counter: (sums[key], values[key]) = (nil, nil)
    case .merged: values[key] = nil
    case .plain, .reference, .entries:
      // A weak reference to the root is a plain value here, and names it too.
      values[key] = value == known ? nil : value.text.map { .string(name($0)) } ?? value
    }
  }

  /// Notes that the server has left out what a change set does with an element of a collection of the model
  /// `holder`.
  mutating func note(leftOut element: String, of holder: String, by set: SubmittedSet) {
    leftOut.append((holder, "The server has left out what \(set) does with \(element.prefix(8))"))
  }

  /// Forgets what was accepted for models that the root does not reach any more, after changes of the server's
  /// own. What the server has changed of a model that it has removed at the same time is in no change set, but
  /// clients see it when one of them puts the model back.
  ///
  /// - Parameter reachable: the models that the root reaches now.
  mutating func forgetAll(but reachable: Set<String>) {
    keep { reachable.contains($0) }
  }

  /// Forgets what was accepted for some models.
  mutating func forget(_ models: Set<String>) { keep { !models.contains($0) } }

  /// Forgets each property for which the reference has a value other than the given one, which a client has
  /// set. The server's record has no such value if the same change set removes the model; clients see it when
  /// another change set puts the model back.
  mutating func forgetUnless(_ uuid: String, has values: [String: PlainJSON]) {
    for (name, value) in values {
      let key = Key(uuid: uuid, name: name)
      if self.values[key] != value { self.values[key] = nil }
      if sums[key] != value.whole { sums[key] = nil }
    }
  }

  private mutating func keep(_ isKept: (String) -> Bool) {
    values = values.filter { isKept($0.key.uuid) }
    members = members.filter { isKept($0.key.uuid) }
    sums = sums.filter { isKept($0.key.uuid) }
  }

  private mutating func put(_ element: String, into key: Key, of set: SubmittedSet) {
    members[key, default: [:]][element] = true
    // When a change set is accepted again, others may have moved the model meanwhile.
    if collectionsKeepIntents || (set.acceptances <= 1 && set.additions.contains(element)) {
      inserted[key, default: []].insert(element)
    }
  }

  /// Returns where the stream contradicts what was accepted since the last call.
  ///
  /// - Parameter reachable: the models that the root reaches in the stream.
  mutating func problems(
    in stream: StreamReference, reachable: @autoclosure () -> Set<String>
  ) -> [String] {
    if touched.isEmpty, leftOut.isEmpty { return [] }
    defer { (touched, inserted, leftOut) = ([], [:], []) }
    let reachable = reachable()
    let missing = leftOut.filter { reachable.contains($0.holder) }.map(\.words)
    return missing
      + problems(
        of: touched, inserted.mapValues { Dictionary(uniqueKeysWithValues: $0.map { ($0, true) }) },
        in: stream, reachable)
  }

  /// Returns where the stream contradicts all accepted change sets together.
  func lasting(in stream: StreamReference, reachable: Set<String>) -> [String] {
    let members = collectionsKeepIntents ? members : [:]
    return problems(
      of: Set(values.keys).union(sums.keys).union(members.keys), members, in: stream, reachable)
  }

  private func problems(
    of keys: Set<Key>, _ members: [Key: [String: Bool]], in stream: StreamReference,
    _ reachable: Set<String>
  ) -> [String] {
    var found: [String] = []
    for key in keys where reachable.contains(key.uuid) {
      var author: String { authors[key]?.description ?? "the beginning" }
      let actual = stream.models[key.uuid]?.properties[key.name] ?? .null
      if let value = values[key], value != actual {
        found.append("\(key) is \(actual), but \(author) has set it to \(value)")
      }
      if let sum = sums[key], actual.whole != sum {
        found.append("\(key) is \(actual), but what was added comes to \(sum), last by \(author)")
      }
      guard let expected = members[key] else { continue }
      let elements = Set(actual.texts)
      for (element, isThere) in expected where elements.contains(element) != isThere {
        let what = isThere ? "is not in" : "is still in"
        found.append("\(element.prefix(8)) \(what) \(key), which \(author) has changed last")
      }
    }
    return found.sorted()
  }
}
