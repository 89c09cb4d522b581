import Jetstream

/// An error of a ``ScopeStorage``.
package enum StorageError: Error, Sendable, Hashable {
  /// Another server has the lease of the scope with this name. For a storage that is a directory, with the path of the log
  /// that is open elsewhere.
  case leased(String, log: String? = nil)
  /// The lease is not valid any more: its term has passed, or it was released.
  case leaseLost
  /// There are other records behind the one that was expected to be the last.
  case conflict(expected: Int, last: Int)
  /// The record that was expected to be the last is not there: one that was appended before has not arrived.
  case gap(expected: Int, last: Int)
  /// The storage did not answer, or cannot do it now, for a reason. It is unknown whether it was done.
  case unavailable(String)
  /// The record with this sequence number was not appended, or is not kept any more.
  case notKept(sequence: Int)
  /// A log has failed.
  case log(LogError)
  /// Something other than a log cannot be read: its place, and the problem.
  case unreadable(place: String, problem: String)
}

extension StorageError: AppendFailure {
  package var remedy: AppendRemedy {
    switch self {
    case .log(let error): error.remedy
    case .unavailable, .gap: .appendAgain
    case .leased, .leaseLost, .conflict, .notKept, .unreadable: .none
    }
  }
}

extension StorageError {
  /// The error of a storage whose log has failed.
  init(_ error: LogError) {
    switch error {
    case .notKept(let sequence, _): self = .notKept(sequence: sequence)
    // The log's lock was the lease.
    case .closed: self = .leaseLost
    default: self = .log(error)
    }
  }

  /// The error as it is for an app that has brought the log, which knows only those of logs.
  var cause: any Error {
    switch self {
    case .log(let error): error
    case .leaseLost: LogError.closed
    default: self
    }
  }
}

extension StorageError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .leased(let name, nil): "Another server has the scope \(name)."
    case .leased(let name, let path?):
      "The log of the scope \(name), in \(path), is open for writing already."
    case .leaseLost: "Another server may have the scope by now."
    case .conflict(let expected, let last):
      "The history ends with record \(last), not \(expected): another server has written it."
    case .gap(let expected, let last):
      "The history ends with record \(last): those up to \(expected) are missing."
    case .unavailable(let reason): "The storage cannot be used now: \(reason)."
    case .notKept(let sequence): "Record \(sequence) is not in the history."
    case .log(let error): "\(error)"
    case .unreadable(let place, let problem): "\(place): \(problem)"
    }
  }
}
