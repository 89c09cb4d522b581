/// The scope as its ``ModelTree`` and the models see it. The methods are called while the tree is being changed: none
/// of them calls observers of the app, except ``refuse(_:)``.
protocol TreeKeeper: AnyObject {
  /// Collects a model that has entered the tree.
  ///
  /// - Parameter below: true for a model that enters with its parent and was not named itself by the change that
  ///   brings it.
  func entered(_ record: ModelRecord, below: Bool)
  /// Collects a model that has left the tree.
  func left(_ record: ModelRecord)
  /// Notes that a model of the tree has lost a parent, so that possibly only local properties hold it now.
  func loosened(_ record: ModelRecord)
  /// Collects the first change of a model since the last change set.
  func willCollect(from record: ModelRecord)
  /// Makes sure that there will be a change set.
  func startCollecting()
  /// Reports a change that has been refused.
  func refuse(_ error: ScopeError)
}
