/// The state that the server's full states and changes lead to, in plain dictionaries. It shares no code with
/// the engines: a model is a dictionary of the last value that was sent for each property.
struct StreamReference {
  /// A model, as the server has sent it.
  struct Model {
    var className: String
    var properties: [String: PlainJSON]
  }

  /// One property of one model.
  struct Key: Hashable, CustomStringConvertible {
    var uuid: String
    var name: String

    var description: String { "\(name) of \(uuid.prefix(8))" }
  }

  private(set) var root = ""
  /// Every model that was sent since the last full state, including those that are gone.
  private(set) var models: [String: Model] = [:]
  private(set) var problems: [String] = []

  /// Starts anew with a full state.
  mutating func begin(root: String, _ fragments: [PlainJSON]) {
    self.root = root
    models = [:]
    for fragment in fragments { apply(fragment, mayBeNew: true) }
  }

  /// Applies the fragments of a message.
  mutating func apply(_ fragments: [PlainJSON]) {
    for fragment in fragments {
      apply(fragment, mayBeNew: fragment["type"]?.text == "add")
    }
  }

  /// Applies the fragments of a message of the server. An addition has all entries of dictionaries that its model has: one
  /// that the root does not lead to loses those that it had before it was removed.
  mutating func apply(_ fragments: [PlainJSON], _ kinds: (String) -> [String: PropertyKind]) {
    let known = fragments.filter { $0["type"]?.text == "add" }.compactMap { $0["uuid"]?.text }
      .filter { models[$0] != nil }
    if !known.isEmpty {
      let reachable = reachable(kinds)
      for uuid in known where !reachable.contains(uuid) {
        for name in models[uuid].map({ Self.entries(of: $0, kinds($0.className)) }) ?? [] {
          models[uuid]?.properties[name] = nil
        }
      }
    }
    apply(fragments)
  }

  private mutating func apply(_ fragment: PlainJSON, mayBeNew: Bool) {
    guard let uuid = fragment["uuid"]?.text, let className = fragment["clsName"]?.text else {
      return problems.append("The server sent a fragment without uuid or clsName")
    }
    if !mayBeNew, models[uuid] == nil {
      problems.append("The server changes \(className) \(uuid.prefix(8)), which it never added")
    }
    models[uuid, default: Model(className: className, properties: [:])].properties
      .merge(fragment["properties"]?.members ?? [:]) { _, new in new }
  }

  /// Returns the models that the root reaches.
  func reachable(_ kinds: (String) -> [String: PropertyKind]) -> Set<String> {
    reachable(from: root, kinds)
  }

  /// Returns a model and those that it reaches.
  func reachable(
    from model: String, _ kinds: (String) -> [String: PropertyKind]
  ) -> Set<String> {
    var found: Set<String> = [model]
    var open = [model]
    var holders: [String: [String]] = [:]
    while let uuid = open.popLast() {
      guard let model = models[uuid] else { continue }
      let kinds = kinds(model.className)
      let names =
        holders[model.className]
        ?? kinds.filter { $0.value == .reference || $0.value == .collection }.map(\.key)
      holders[model.className] = names
      for name in names + Self.entries(of: model, kinds) {
        switch model.properties[name] {
        case .string(let held)?: if found.insert(held).inserted { open.append(held) }
        case .array(let elements)?:
          for case .string(let held) in elements where found.insert(held).inserted {
            open.append(held)
          }
        default: break
        }
      }
    }
    return found
  }

  /// Returns the names of the entries of the dictionaries of a model.
  private static func entries(of model: Model, _ kinds: [String: PropertyKind]) -> [String] {
    let dictionaries = kinds.filter { $0.value == .entries }.map(\.key)
    if dictionaries.isEmpty { return [] }
    return model.properties.keys.filter { name in
      dictionaries.contains { PropertyKind.isEntry(name, of: $0) }
    }
  }

  /// Returns where a scope's canonical JSON differs. `us` and `them` stand for this state and for the scope.
  func differences(
    from canonical: PlainJSON, _ kinds: (String) -> [String: PropertyKind], _ us: String,
    _ them: String
  ) -> [String] {
    var found: [String] = []
    if canonical["root"]?.text != root { found.append("the root is another one") }
    let theirs = canonical["models"]?.members ?? [:]
    let reachable = reachable(kinds)
    for uuid in reachable.symmetricDifference(theirs.keys).sorted() {
      let className = models[uuid]?.className ?? theirs[uuid]?["clsName"]?.text ?? "a model"
      found.append(
        "only \(reachable.contains(uuid) ? us : them) has \(className) \(uuid.prefix(8))")
    }
    for (uuid, model) in theirs.sorted(by: { $0.key < $1.key }) where reachable.contains(uuid) {
      let ours = models[uuid]?.properties ?? [:]
      for (name, value) in (model["properties"]?.members ?? [:]).sorted(by: { $0.key < $1.key })
      where ours[name] != value {
        let other = ours[name].map { "\($0)" } ?? "nothing"
        found.append("\(Key(uuid: uuid, name: name)): \(us) has \(other), \(them) \(value)")
      }
      guard let our = models[uuid] else { continue }
      for name in Self.entries(of: our, kinds(our.className)).sorted() {
        let value = ours[name] ?? .null
        if value == .null || model["properties"]?[name] != nil { continue }
        found.append("\(Key(uuid: uuid, name: name)): \(us) has \(value), \(them) nothing")
      }
    }
    return found
  }

  mutating func takeProblems() -> [String] {
    defer { problems = [] }
    return problems
  }
}
