import Jetstream

/// A place in which servers keep the histories of scopes, by the names of the scopes: a directory, or a store that servers
/// share.
///
/// A history is a list of records, numbered from 1 on without gaps, and snapshots, each of which stands for all records up
/// to one of them. The storage knows nothing of their content. Records carry the decisions on clients' change sets, so a
/// server that takes over a scope, or follows one, repeats what was decided and never judges again.
///
/// One server at a time writes the history of a scope: the one that has its ``ScopeLease``. What the lease promises is
/// the contract of all storages; one suite of tests runs it against each of them.
package protocol ScopeStorage: Sendable {
  /// Looks for a scope, without taking its lease. Cost: independent of the number of records.
  func find(_ name: String) async throws(StorageError) -> StoredScope

  /// Keeps the schema of a scope for all later openings. When it returns, the schema is durable.
  func keep(_ schema: ScopeSchema, of name: String) async throws(StorageError)

  /// Takes the lease of a scope. A history is created for a scope that has none.
  ///
  /// - Throws: ``StorageError/leased(_:log:)`` while another server has it, also one in the same process;
  ///   ``StorageError/unavailable(_:)``; or the error of a history that cannot be used. A storage may go on without the
  ///   missing end of a history; see ``StoredHistory/losses``.
  func lease(_ name: String) async throws(StorageError) -> any ScopeLease

  /// Returns the records behind a sequence number, each once it is durable, as they are appended by the holder of the lease.
  /// It ends when the task is cancelled.
  ///
  /// A record that a snapshot stands for may not be kept any more: then it throws
  /// ``StorageError/notKept(sequence:)``, and the follower begins again with the state. Following takes no lease.
  func follow(_ name: String, after sequence: Int) -> StoredRecords
}

/// The findings of a storage about a scope.
package struct StoredScope: Sendable {
  /// True if there is no history.
  package var isNew: Bool
  /// The schema that a client has brought; nil if none has.
  package var schema: ScopeSchema?

  package init(isNew: Bool, schema: ScopeSchema?) { (self.isNew, self.schema) = (isNew, schema) }
}

/// The right to write the history of one scope, and the only way to do it.
///
/// A lease is valid until it is released or lost. Where servers share a storage it has a term, which the storage renews
/// for as long as the server's process runs and reaches it; a lease whose term has passed may be given to another server.
/// From then on, the old one is stale: nothing that its holder asks for has an effect, whenever that arrives, and
/// everything fails with ``StorageError/leaseLost``.
package protocol ScopeLease: Sendable {
  /// Reads the newest complete snapshot and the records behind it, also those that are not durable. The records of a batch
  /// that is not answered yet may be missing.
  func read() async throws(StorageError) -> StoredHistory

  /// Appends a batch of records behind the one with the sequence number `expected`, which is 0 for the first.
  ///
  /// - The batch is there as a whole or not at all. `done` is called once, in any isolation domain: when it is durable, with
  ///   the sequence number of the last record that is durable by then, or when it has failed.
  /// - Batches take effect in the order of the calls. The next one may be appended before the answer to the one before
  ///   it. When that has not arrived, those behind it fail with ``StorageError/gap(expected:last:)``.
  /// - If there are records behind `expected` already, nothing is appended. If they are the batch, it succeeds, so that a
  ///   batch whose answer was lost can be appended again; otherwise it fails with
  ///   ``StorageError/conflict(expected:last:)``. For that, each record has content of its own: an id, or a client and a
  ///   number.
  /// - After ``StorageError/unavailable(_:)`` it is unknown whether the batch is there, or will still arrive: then it finds
  ///   itself there, or a gap, and does no harm.
  /// - The error's `remedy` says how the writer goes on. Until a batch is durable, the writer has to keep it.
  ///
  /// - Parameter outlivesProcess: true to hand the batch to the operating system before this returns, if the storage is on
  ///   this machine and that takes no waiting: it is shown already to those who use the scope in this process.
  func append(
    _ records: [RecordContent], after expected: Int, outlivesProcess: Bool,
    then done: @escaping @Sendable (Result<Int, StorageError>) -> Void)

  /// Writes a snapshot, which stands for all records up to one of them, and may drop these. Appending goes on meanwhile.
  ///
  /// It counts once it is complete and durable. Until then, and if the process ends or it fails, the snapshot before it
  /// counts, with all records behind that. It fails with ``StorageError/notKept(sequence:)`` if `sequence` was not
  /// appended. That the records could not be dropped is no failure of it. `done` is called once, in any isolation domain.
  ///
  /// - Parameter state: makes the state, in any isolation domain.
  func writeSnapshot(
    at sequence: Int, state: @escaping @Sendable () -> [RecordContent],
    then done: @escaping @Sendable (Result<WrittenSnapshot<StorageError>, StorageError>) -> Void)

  /// Gives the lease back once everything that was appended is durable. Later calls of the other methods fail.
  ///
  /// - Throws: the error for which something is not durable. The lease is kept then, and releasing it can be tried again.
  ///   A lease that is lost, or was released, is released without an error.
  func release() async throws(StorageError)
}

/// A history as it was read: the newest snapshot, and the records behind it.
package struct StoredHistory: Sendable {
  /// The newest complete snapshot; nil if there is none.
  package var snapshot: LogSnapshot?
  /// The records behind the snapshot, in order.
  package var records: [LogRecord]
  /// The parts of the history that are missing although they were durable. Empty unless the storage goes on without
  /// them; then it has begun a new epoch behind what is left, since clients may have seen them.
  package var losses: [LogDamage] = []
  /// True if records may be missing at the end that clients were told of before they were synced. The storage has begun a
  /// new epoch behind what is left.
  package var mayHaveLostEnd = false

  package init(snapshot: LogSnapshot?, records: [LogRecord]) {
    (self.snapshot, self.records) = (snapshot, records)
  }

  /// The sequence number of the last record; 0 if there is none.
  package var last: Int { records.last?.sequence ?? snapshot?.sequence ?? 0 }
}
