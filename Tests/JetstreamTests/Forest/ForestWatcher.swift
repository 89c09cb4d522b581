import Foundation

@testable import Jetstream

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
    case compositeAtOnce(CompositeKey)
    // Once a tick.
    case change([String])
    case numberValue
    case listValue(ListKey)
    case referenceValue(ReferenceKey)
    case difference(ListKey)
    case tree
    case treeAt(ListKey)
    case treeSignal
    case composite(CompositeKey)
    case compositeValue(CompositeKey)
    case rows(ForestQuery)
  }

  let node: Int
  let kind: Kind
  let log: ForestLog
  private(set) var ear: ForestEar?
  /// What a query keeps up to date.
  private(set) var live: LiveQuery<Plant>?
  private let isFree: Bool
  private(set) var tokens: [ObservationToken] = []
  private(set) var isOver = false
  /// Changes up to this one are none of its business.
  let since: Int
  /// For how many steps it was watched since it ended.
  var quietSteps = 0
  /// Whether it was made by an observer within the last step.
  var isNewborn = false
  /// Whether it was ended by an observer within the last step.
  var isCutOff = false
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
    if case .rows(let query) = kind { live = query.live(plant, in: forest) }
    tokens = isFree ? observeFreely(plant) : observe(plant, ear)
    reset(forest.reference)
  }

  /// Counts from here on.
  func reset(_ reference: ForestReference) {
    for key in ListKey.allCases { log.content[key] = reference.nodes[node]!.list(key) }
    switch kind {
    case .difference(let key): log.rows = reference.nodes[node]!.list(key)
    case .rows(let query): log.rows = query.rows(reference, node)
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
    case .composite(let key), .compositeValue(let key), .compositeAtOnce(let key):
      "\(reference.value(node, key))"
    case .rows(let query): "\(query.rows(reference, node))"
    default: ""
    }
  }

  func cancel() {
    for token in tokens { token.cancel() }
    live = nil
    isOver = true
  }

  func releaseEar() {
    guard !isFree else { return cancel() }
    ear = nil
    live = nil
    isOver = true
  }

  /// The node is gone.
  func forget() {
    live = nil
    isOver = true
  }

  /// Whether what it observes is still there.
  func isAnchored(in reference: ForestReference) -> Bool {
    if case .rows(let query) = kind, query.scope != nil { return true }
    return reference.nodes[node] != nil
  }
}

extension ForestWatcher: Equatable {
  static func == (a: ForestWatcher, b: ForestWatcher) -> Bool { a === b }

  var readsItemsAtOnce: Bool {
    if case .compositeAtOnce(let key) = kind { key != .chosen } else { false }
  }

  var name: String { "the observer of #\(node) (\(kind))" }

  func isToldSteps(of key: ListKey) -> Bool {
    switch kind {
    case .steps: true
    case .typedSteps(let own): own == key
    default: false
    }
  }

  /// Whether it is told changes of a property at once.
  func isTold(of key: String) -> Bool {
    switch kind {
    case .anyProperty: true
    case .number: key == "number"
    case .list(let own): key == own.rawValue
    case .reference(let own): key == own.rawValue
    default: false
    }
  }

  func isTold(_ event: ForestEvent) -> Bool {
    guard event.node == node else { return false }
    return switch event {
    case .property(_, let key, _, _): isTold(of: key)
    case .added, .removed: if case .parents = kind { true } else { false }
    case .attached, .detached: if case .membership = kind { true } else { false }
    }
  }

  /// Whether it has been watched for long enough after its end.
  func hasBeenQuiet() -> Bool {
    quietSteps += 1
    return quietSteps > 40
  }
}
