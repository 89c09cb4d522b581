/// Combines successive steps of a collection into one net change: the position of each model before
/// the first step and after the last.
///
/// The content is a sequence of runs: ranges of the old content, single models that a step has
/// touched, and new models. Steps split only the runs that they touch, so k steps cost O(k log k),
/// whatever the size of the collection.
struct StepComposition {
  /// Adjacent models.
  private struct Run {
    /// The old offset of the first model; negative for a new model.
    var start: Int
    var length: Int
    /// True if a step has moved the model, or has removed it and another has inserted it again.
    var isTouched = false

    var isNew: Bool { start < 0 }
    static let new = Run(start: -1, length: 1)
  }

  /// A node of a treap of runs, in order. `total` is the number of models in the node and below it.
  private struct Node {
    var run: Run
    var priority: UInt64
    var left = -1
    var right = -1
    var total: Int
  }

  private let oldCount: Int
  private var nodes: ContiguousArray<Node> = []
  private var root = -1
  private var chance: UInt64 = 0
  /// Old models that are currently removed, with their old offsets.
  private var removed: [ObjectIdentifier: (offset: Int, model: ModelObject)] = [:]

  /// Starts with a collection of `oldCount` models.
  init(oldCount: Int) {
    self.oldCount = oldCount
    if oldCount > 0 { root = makeNode(Run(start: 0, length: oldCount)) }
  }

  /// Combines the steps that have led to a collection of `newCount` models.
  init(_ steps: some Collection<ListOperation>, newCount: Int) {
    var oldCount = newCount
    for step in steps {
      switch step {
      case .insert: oldCount -= 1
      case .remove: oldCount += 1
      case .move: break
      }
    }
    self.init(oldCount: oldCount)
    for step in steps { apply(step) }
  }

  /// Adds a step.
  mutating func apply(_ step: ListOperation) {
    switch step {
    case .insert(let model, let position):
      if let known = removed.removeValue(forKey: ObjectIdentifier(model)) {
        insert(Run(start: known.offset, length: 1, isTouched: true), at: position)
      } else {
        insert(.new, at: position)
      }
    case .remove(let model, let position):
      let run = remove(at: position)
      if !run.isNew { removed[ObjectIdentifier(model)] = (run.start, model) }
    case .move(_, let from, let to):
      var run = remove(at: from)
      run.isTouched = true
      insert(run, at: to)
    }
  }

  /// Returns the net change; `model` returns the model at an offset of the new content.
  ///
  /// As many models as possible keep their order and are not part of the difference. Any other old
  /// model is removed and inserted, with the two changes associated.
  func difference<Element>(
    of type: Element.Type = Element.self, model: (Int) -> ModelObject
  ) -> CollectionDifference<Element> {
    var changes: [CollectionDifference<Element>.Change] = []
    func element(_ model: ModelObject) -> Element {
      guard let element = model as? Element else {
        preconditionFailure("\(model.schema.wireName) is no \(Element.self).")
      }
      return element
    }
    for (offset, model) in removed.values {
      changes.append(.remove(offset: offset, element: element(model), associatedWith: nil))
    }
    let runs = inOrder()
    let stays = Self.heaviestIncreasing(runs)
    var offset = 0
    for (place, run) in runs.enumerated() {
      if !stays[place] {
        for step in 0..<run.length {
          let element = element(model(offset + step))
          let old = run.isNew ? nil : run.start + step
          changes.append(.insert(offset: offset + step, element: element, associatedWith: old))
          if let old {
            changes.append(.remove(offset: old, element: element, associatedWith: offset + step))
          }
        }
      }
      offset += run.length
    }
    return CollectionDifference(changes)!
  }

  /// Adjacent models in the new content.
  struct Stretch {
    let newOffset: Int
    /// Their offset in the old content, where they are adjacent as well; negative if they are new.
    let oldOffset: Int
    let count: Int
    /// True if they are old and keep their order relative to all others that stay.
    let stays: Bool

    var isNew: Bool { oldOffset < 0 }
  }

  /// Returns the net change: the new content in order, and the removed models with their old
  /// offsets.
  func stretches() -> (new: [Stretch], removed: [(offset: Int, model: ModelObject)]) {
    let runs = inOrder()
    let stays = Self.heaviestIncreasing(runs)
    var result: [Stretch] = []
    result.reserveCapacity(runs.count)
    var offset = 0
    for (run, stays) in zip(runs, stays) {
      result.append(
        Stretch(newOffset: offset, oldOffset: run.start, count: run.length, stays: stays))
      offset += run.length
    }
    return (result, removed.values.sorted { $0.offset < $1.offset })
  }

  // MARK: Runs in order

  private func inOrder() -> ContiguousArray<Run> {
    var result: ContiguousArray<Run> = []
    result.reserveCapacity(nodes.count)
    var path: [Int] = []
    var next = root
    while next >= 0 || !path.isEmpty {
      while next >= 0 {
        path.append(next)
        next = nodes[next].left
      }
      let node = path.removeLast()
      result.append(nodes[node].run)
      next = nodes[node].right
    }
    return result
  }

  /// Determines the runs that stay: of the old runs, a series with ascending offsets that holds the
  /// most models and, among equals, the most that no step has touched. Cost: O(k log k).
  private static func heaviestIncreasing(_ runs: ContiguousArray<Run>) -> [Bool] {
    var stays = runs.map { !$0.isNew }
    let old = runs.indices.filter { stays[$0] }
    let isAscending = zip(old, old.dropFirst()).allSatisfy { runs[$0].start < runs[$1].start }
    if isAscending { return stays }
    for place in old { stays[place] = false }
    var ranks = [Int](repeating: 0, count: runs.count)
    for (rank, place) in old.sorted(by: { runs[$0].start < runs[$1].start }).enumerated() {
      ranks[place] = rank + 1
    }
    // A Fenwick tree: the heaviest chain that ends at one of the ranks up to some rank.
    var heaviest = [(weight: Int, end: Int)](repeating: (0, -1), count: old.count + 1)
    var previous = [Int](repeating: -1, count: runs.count)
    var best = (weight: 0, end: -1)
    for place in old {
      var before = (weight: 0, end: -1)
      var rank = ranks[place] - 1
      while rank > 0 {
        if heaviest[rank].weight > before.weight { before = heaviest[rank] }
        rank &= rank - 1
      }
      previous[place] = before.end
      let untouched = runs[place].isTouched ? 0 : runs[place].length
      let chain = (weight: before.weight + runs[place].length << 32 + untouched, end: place)
      if chain.weight > best.weight { best = chain }
      rank = ranks[place]
      while rank <= old.count {
        if chain.weight > heaviest[rank].weight { heaviest[rank] = chain }
        rank += rank & -rank
      }
    }
    var place = best.end
    while place >= 0 {
      stays[place] = true
      place = previous[place]
    }
    return stays
  }

  // MARK: Treap

  private mutating func makeNode(_ run: Run) -> Int {
    chance &+= 0x9E37_79B9_7F4A_7C15
    var mixed = (chance ^ (chance >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed ^= mixed >> 27
    nodes.append(Node(run: run, priority: mixed, total: run.length))
    return nodes.count - 1
  }

  private func total(_ node: Int) -> Int { node < 0 ? 0 : nodes[node].total }

  private mutating func update(_ node: Int) {
    nodes[node].total =
      nodes[node].run.length + total(nodes[node].left) + total(nodes[node].right)
  }

  private mutating func insert(_ run: Run, at position: Int) {
    let (before, after) = split(root, at: position)
    root = merge(merge(before, makeNode(run)), after)
  }

  private mutating func remove(at position: Int) -> Run {
    let (before, rest) = split(root, at: position)
    let (node, after) = split(rest, at: 1)
    root = merge(before, after)
    return nodes[node].run
  }

  /// Splits a subtree into the models before `position` and those from there on. Cuts a run that
  /// contains the position in two.
  private mutating func split(_ node: Int, at position: Int) -> (Int, Int) {
    if node < 0 { return (-1, -1) }
    let start = total(nodes[node].left)
    let run = nodes[node].run
    if position <= start {
      let (before, after) = split(nodes[node].left, at: position)
      nodes[node].left = after
      update(node)
      return (before, node)
    }
    if position >= start + run.length {
      let (before, after) = split(nodes[node].right, at: position - start - run.length)
      nodes[node].right = before
      update(node)
      return (node, after)
    }
    let cut = position - start
    let right = nodes[node].right
    let rest = makeNode(Run(start: run.start + cut, length: run.length - cut))
    nodes[node].run.length = cut
    nodes[node].right = -1
    update(node)
    return (node, merge(rest, right))
  }

  private mutating func merge(_ first: Int, _ second: Int) -> Int {
    if first < 0 { return second }
    if second < 0 { return first }
    if nodes[first].priority > nodes[second].priority {
      nodes[first].right = merge(nodes[first].right, second)
      update(first)
      return first
    }
    nodes[second].left = merge(first, nodes[second].left)
    update(second)
    return second
  }
}
