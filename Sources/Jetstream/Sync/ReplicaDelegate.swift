import Foundation

/// The client to which a replica belongs.
protocol ReplicaDelegate: AnyObject {
  /// The treatment of pending change sets when the server has lost their history.
  var historyLoss: HistoryLoss { get }
  /// The current time, for change sets that have no date; nil for no date.
  var date: Date? { get }
  /// Reports an event of the scope to the app.
  var report: (ClientEngine.Event) -> Void { get }

  /// Called when a local change set waits to be sent, when held decisions were applied, and when the replica's sync
  /// state may have changed.
  func sendWaiting()

  /// Gives other client identities to the replicas that need them; see ``ClientEngine/takeNewIdentities()``.
  func takeNewIdentities()
}

extension ClientEngine: ReplicaDelegate {
  var historyLoss: HistoryLoss { configuration.onHistoryLoss }

  var date: Date? { configuration.date() }
}
