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
    get { tree.root }
    set {
      if newValue === root { return }
      guard let newValue else { return releaseRoot() }
      if root != nil { return refuse(.rootIsSet(scope: name)) }
      takeRoot(newValue)
    }
  }

  /// Makes `model` the root, with all that it holds: it is taken out of every property and collection outside of its own
  /// tree that holds it, detached from the scope that it is in, and attached to this one.
  ///
  /// Refused, with nothing changed, if the model is the root of another scope, or if something else in another scope
  /// holds a part of what the model holds. Cost: O(n) for the n models.
  func takeRoot(_ model: ModelObject) {
    let (outside, error) = Structure.prepareMove(of: model.ensureRecord(), to: tree)
    if let error { return refuse(error) }
    Holder.remove(model, from: outside)
    // Observers of that may have set a root meanwhile.
    if root == nil { setRoot(model, isInitial: false) }
  }

  func setRoot(_ model: ModelObject, isInitial: Bool) {
    requireNoModification("given a root")
    let record = model.ensureRecord()
    tree.root = model
    tree.register(model.schema)
    var events = StructureEvents()
    func attach() -> ScopeError? { Structure.attach(record, to: tree, &events) }
    // The initial tree is the starting point of the scope, not a change.
    let error = isInitial ? tree.writeRemotely(attach) : attach()
    if let error {
      tree.root = nil
      refuse(error)
    } else {
      events.fire()
    }
  }

  private func releaseRoot() {
    guard let model = root else { return }
    requireNoModification("asked for its root")
    sealDeferred(includingHeldBack: true)
    tree.root = nil
    var events = StructureEvents()
    Structure.detachUnreached(among: [model], from: tree, &events)
    unknown = nil
    events.fire()
    // Until the observers have been told, nothing of this goes.
    withExtendedLifetime(model) {}
  }
}
