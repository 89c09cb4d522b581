import Observation

/// The part of a client that SwiftUI and `withObservationTracking` follow: its status, the sync states of its scopes,
/// and the pending changes of models.
///
/// A client that nothing tracks pays for a registrar and nothing else. Pending changes are followed from the first read
/// on: the ledger of pending change sets of that scope is listened to until the client is gone.
///
/// Isolation: the client's actor.
final class ClientTracking {
  private unowned let client: Client
  private let registrar = ObservationRegistrar()
  private var followed: [ObjectIdentifier: [ObservationToken]] = [:]

  init(_ client: Client) { self.client = client }

  deinit {
    for token in followed.values.joined() { token.cancel() }
  }

  /// Notes that a property of the client is read.
  func read<Value>(_ keyPath: KeyPath<Client, Value>) {
    registrar.access(client, keyPath: keyPath)
  }

  /// Notes that the pending changes of models of a scope are read.
  func readPending(in scope: Scope?) {
    read(\.trackedPendingChanges)
    guard let scope, followed[ObjectIdentifier(scope)] == nil else { return }
    let pending = scope.pendingChangeSets
    followed[ObjectIdentifier(scope)] = [
      pending.onAdd.listen { [weak self] _ in self?.didChange(\.trackedPendingChanges) },
      pending.onRemove.listen { [weak self] _ in self?.didChange(\.trackedPendingChanges) },
    ]
  }

  /// Reports that a property of the client has changed.
  func didChange<Value>(_ keyPath: KeyPath<Client, Value>) {
    registrar.willSet(client, keyPath: keyPath)
    registrar.didSet(client, keyPath: keyPath)
  }
}

extension Client {
  /// Stands for the sync states of all scopes, which have no key path of their own.
  var trackedSyncStates: Void { () }
  /// Stands for the pending changes of all models.
  var trackedPendingChanges: Void { () }
}
