/// A record without a sequence number: one that is about to be appended, or a part of a state.
package struct RecordContent: Sendable, Hashable {
  /// The kind of the record.
  package let kind: LogKind
  /// One JSON value in UTF-8, without line breaks.
  package let payload: [UInt8]

  /// Makes the content of a record.
  package init(_ kind: LogKind, _ payload: [UInt8]) { (self.kind, self.payload) = (kind, payload) }
}

/// An error of appending records to a history.
package protocol AppendFailure: Error {
  /// The way in which the writer of the history goes on.
  var remedy: AppendRemedy { get }
}

/// The way in which a writer goes on after an append has failed.
package enum AppendRemedy: Sendable {
  /// The history has taken the records, in their order, and makes them durable at the next attempt, which begins when
  /// they are appended again. Later records may be appended behind them meanwhile.
  case appendMore
  /// It is unknown whether the records are there, or known that they are not. They have to be appended again, after the
  /// same sequence number and in the same batches, before any later ones.
  case appendAgain
  /// Nothing can be appended any more.
  case none
}

extension LogError: AppendFailure {
  package var remedy: AppendRemedy {
    switch self {
    case .file, .moved: .appendMore
    // A log that could not be closed is open again.
    case .backlog, .closed: .appendAgain
    case .tooLong, .inUse, .damaged, .notKept, .newerVersion, .unreadable: .none
    }
  }
}
