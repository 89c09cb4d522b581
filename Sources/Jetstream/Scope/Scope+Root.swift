/// The model at the top of a scope.
extension Scope {
  /// The model at the top. It can be set once: a second root is refused, unless ``releaseRoot()`` was
  /// called before. ``ModelObject/makeRoot(of:)`` takes a model from where it is.
  public var root: ModelObject? {
    get { rootRecord?.model }
    set {
      guard let newValue, newValue !== root else { return }
      guard rootRecord == nil else { return refuse(.rootIsSet(name)) }
      setRoot(newValue, isInitial: false)
    }
  }

  func setRoot(_ model: ModelObject, isInitial: Bool, isOwn: Bool = false) {
    requireNoModification("given a root")
    let record = model.ensureRecord()
    rootRecord = record
    if isOwn { ownHold = self } else { heldRoot = model }
    register(model.schema)
    var events = StructureEvents()
    // The first tree is where the scope begins, not a change of it.
    isWritingRemotely = isInitial
    let error = Structure.attach(record, to: self, &events)
    isWritingRemotely = false
    if let error {
      rootRecord = nil
      heldRoot = nil
      ownHold = nil
      refuse(error)
    } else {
      events.fire()
    }
  }

  /// Takes the root off, so that it can be put into another scope with all that it holds. Every model
  /// is detached; the scope is empty and can get a root again.
  ///
  /// What was changed until now still comes out of ``onChanges``; that the models are gone does not,
  /// since no property says so. A scope that is being synced must be closed first. Cost: O(n).
  ///
  /// - Precondition: this is not called within ``modify(_:author:_:)``.
  /// - Returns: the model that was the root.
  @discardableResult
  public func releaseRoot() -> ModelObject? {
    guard let model = root else { return nil }
    requireNoModification("asked for its root")
    let handle = takeDeferred()
    if let set = collect(for: handle) {
      sealed.append(set)
    } else {
      handle?.finish(.completed, nil)
    }
    rootRecord = nil
    var events = StructureEvents()
    Structure.detachUnreached(among: [model], from: self, &events)
    // Until the observers have been told, nothing of this goes.
    let hold = (heldRoot, ownHold)
    heldRoot = nil
    ownHold = nil
    unknown = nil
    events.fire()
    withExtendedLifetime(hold) {}
    return model
  }

  /// The root of its own scope is being deallocated, which nobody else can be: everything else is
  /// held by what the root reaches.
  func rootIsReleased() {
    let hold = ownHold
    ownHold = nil
    dissolve()
    withExtendedLifetime(hold) {}
  }
}
