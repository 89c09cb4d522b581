/// Applying the changes of the source since the last evaluation.
extension QueryEngine {
  func settle(_ mark: (Int, RowReasons) -> Void) {
    switch source {
    case .scope(let scope): settle(scope, mark)
    case .collection(let collection): settle(collection, mark)
    }
  }

  private func settle(_ source: ScopeSource, _ mark: (Int, RowReasons) -> Void) {
    let touched = source.takeTouched()
    // When a scope is deallocated, its models do not count as having left.
    guard let scope = source.scope else { return }
    for model in touched {
      let known = table.slot(of: model)
      if model.scope === scope {
        let slot = known ?? addRow(model)
        let isElsewhere = source.place(slot, model)
        if known == nil { mark(slot, .arrived) } else if isElsewhere { mark(slot, .placed) }
      } else if let known {
        mark(known, .gone)
      }
    }
  }

  private func settle(_ source: CollectionSource, _ mark: (Int, RowReasons) -> Void) {
    for step in source.takeSteps() {
      switch step {
      case .insert(let model, let position):
        // A model that was removed earlier in the same tick has only moved.
        let known = table.slot(of: model)
        let slot = known ?? addRow(model)
        source.order.insert(
          slot, weight: table.shown.contains(slot) ? 1 : 0, at: position)
        mark(slot, known == nil ? .arrived : .placed)
        reasons[slot].remove(.gone)
      case .remove(_, let position):
        let slot = source.order[position]
        source.order.remove(slot)
        mark(slot, .gone)
      case .move(_, let from, let to):
        let slot = source.order[from]
        let weight = source.order.weight(of: slot)
        source.order.remove(slot)
        source.order.insert(slot, weight: weight, at: to)
        mark(slot, .placed)
      }
    }
  }
}

/// The reasons why a row is looked at in a tick.
struct RowReasons: OptionSet {
  let rawValue: UInt8
  /// The row has entered the source.
  static let arrived = RowReasons(rawValue: 1)
  /// The row has left the source.
  static let gone = RowReasons(rawValue: 2)
  /// The row has another position in the source.
  static let placed = RowReasons(rawValue: 4)
  /// A property that the row's closures have read has changed.
  static let changed = RowReasons(rawValue: 8)
}
