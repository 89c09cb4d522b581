/// The root model of a scope.
extension Scope {
  /// The model at the top.
  ///
  /// A scope without a root takes a model with all that it holds, from wherever it is: the model is taken out of every
  /// property and collection that holds it. A second root is refused with ``ScopeError/rootIsSet(scope:)``, and so is
  /// the root of another scope.
  ///
  /// Nil takes the root off, so that another scope can take it with all that it holds: every model is detached, and the
  /// scope is empty. Changes made until then still come out of ``onChanges``; that the models are gone does not, since no
  /// property says so. The client must have left the scope before. Cost: O(n).
  ///
  /// ```swift
  /// let canvas = draft.root
  /// draft.root = nil
  /// published.root = canvas
  /// ```
  ///
  /// - Precondition: it is not set within ``modify(_:author:_:)``.
  public var root: ModelObject? {
    get { rootRecord?.model }
    set {
      if newValue === root { return }
      guard let newValue else { return releaseRoot() }
      if root != nil { return refuse(.rootIsSet(scope: name)) }
      takeRoot(newValue)
    }
  }

  func setRoot(_ model: ModelObject, isInitial: Bool) {
    requireNoModification("given a root")
    let record = model.ensureRecord()
    rootRecord = record
    heldRoot = model
    register(model.schema)
    var events = StructureEvents()
    // The initial tree is the starting point of the scope, not a change.
    isWritingRemotely = isInitial
    let error = Structure.attach(record, to: self, &events)
    isWritingRemotely = false
    if let error {
      rootRecord = nil
      heldRoot = nil
      refuse(error)
    } else {
      events.fire()
    }
  }

  private func releaseRoot() {
    guard let model = root else { return }
    requireNoModification("asked for its root")
    let handle = takeDeferred()
    if let set = collect(for: handle) {
      sealed.append(set)
    } else {
      handle?.finish(.accepted, nil)
    }
    rootRecord = nil
    var events = StructureEvents()
    Structure.detachUnreached(among: [model], from: self, &events)
    // Until the observers have been told, nothing of this goes.
    let hold = heldRoot
    heldRoot = nil
    unknown = nil
    events.fire()
    withExtendedLifetime(hold) {}
  }
}
