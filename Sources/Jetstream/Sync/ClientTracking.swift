import Observation

/// The part of a client that SwiftUI and `withObservationTracking` follow: its status, the sync states of its scopes,
/// and the pending changes of models.
///
/// A client that nothing tracks pays for a registrar and nothing else. From the first read of pending changes on, the
/// pending change sets of that scope are listened to, for as long as scope and client are there.
///
/// Isolation: the client's actor.
final class ClientTracking {
  private unowned let client: Client
  private let registrar = ObservationRegistrar()
  private var followed: [Followed] = []

  /// A scope that is listened to. Held weakly: another scope may have the address of one that is gone.
  private struct Followed {
    weak var scope: Scope?
    let tokens: [ObservationToken]
  }

  init(_ client: Client) { self.client = client }

  deinit {
    for token in followed.lazy.flatMap(\.tokens) { token.cancel() }
  }

  /// Notes that a property of the client is read.
  func read<Value>(_ keyPath: KeyPath<Client, Value>) {
    registrar.access(client, keyPath: keyPath)
  }

  /// Notes that the pending changes of models of a scope are read.
  func readPending(in scope: Scope?) {
    read(\.trackedPendingChanges)
    guard let scope, !followed.contains(where: { $0.scope === scope }) else { return }
    followed.removeAll { $0.scope == nil }
    let pending = scope.pendingChangeSets
    let tokens = [pending.onAdd, pending.onRemove].map { signal in
      signal.listen { [weak self] _ in self?.didChange(\.trackedPendingChanges) }
    }
    followed.append(Followed(scope: scope, tokens: tokens))
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
