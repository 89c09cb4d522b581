/// What a record of a log is about, by a name of one to 32 lower-case letters, digits and hyphens.
///
/// Kinds are open: a log keeps what it does not know. Those of Jetstream are ``set`` and ``fragment``;
/// `segment` and `snapshot` begin the files.
package struct LogKind: RawRepresentable, Sendable, Hashable {
  /// The name.
  package let rawValue: String

  /// A kind with a name that it can have; nil otherwise.
  package init?(rawValue: String) {
    guard (1...32).contains(rawValue.utf8.count), rawValue.utf8.allSatisfy(Self.isAllowed) else {
      return nil
    }
    self.rawValue = rawValue
  }

  /// A kind whose name stands in the source.
  package init(_ name: StaticString) {
    guard let kind = LogKind(rawValue: name.description) else {
      preconditionFailure(
        "\(name) cannot be the kind of a record: it takes 1 to 32 lower-case letters, digits and "
          + "hyphens.")
    }
    self = kind
  }

  init(unchecked rawValue: String) { self.rawValue = rawValue }

  static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "-"):
      true
    default: false
    }
  }

  /// A ``ChangeSet``.
  package static let set = LogKind(unchecked: "set")
  /// A ``SyncFragment``: in a snapshot, a model with all its values, the root first.
  package static let fragment = LogKind(unchecked: "fragment")
  /// The first line of a segment.
  static let segment = LogKind(unchecked: "segment")
  /// The first line of a snapshot.
  static let snapshot = LogKind(unchecked: "snapshot")
}

/// One record of a log.
package struct LogRecord: Sendable, Hashable {
  /// Its number. The first record of a log has 1, and there are no gaps.
  package let sequence: Int
  /// What it is about.
  package let kind: LogKind
  /// The UTF-8 of one JSON value, without line breaks.
  package let payload: [UInt8]

  init(sequence: Int, kind: LogKind, payload: [UInt8]) {
    self.sequence = sequence
    self.kind = kind
    self.payload = payload
  }
}

/// The content of a snapshot: what the records up to a number amount to.
package struct LogSnapshot: Sendable, Hashable {
  /// The number of the last record that the snapshot stands for; 0 for what was there before the first.
  package let sequence: Int
  /// The state, as whoever made the snapshot has put it down. Each has the snapshot's own number.
  package let state: [LogRecord]
  /// Earlier records that the state does not stand for, such as those of kinds that whoever made it did
  /// not know: just as they were, in order.
  package let kept: [LogRecord]
}
