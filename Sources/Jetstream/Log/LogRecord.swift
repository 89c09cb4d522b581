/// The kind of a record: a name of 1 to 32 lower-case letters, digits and hyphens.
///
/// Kinds are open: a log keeps records of kinds that it does not know. Jetstream defines ``set``
/// and ``fragment``; `segment` and `snapshot` mark the first lines of files.
package struct LogKind: RawRepresentable, Sendable, Hashable {
  /// The name of the kind.
  package let rawValue: String

  /// Makes a kind with the given name; nil if the name is not allowed.
  package init?(rawValue: String) {
    guard (1...32).contains(rawValue.utf8.count), rawValue.utf8.allSatisfy(Self.isAllowed) else {
      return nil
    }
    self.rawValue = rawValue
  }

  /// Makes a kind from a literal name. Traps if the name is not allowed.
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
  /// The name of a state, which the app has given it.
  package static let revision = LogKind(unchecked: "revision")
  /// The first line of a segment.
  static let segment = LogKind(unchecked: "segment")
  /// The first line of a snapshot.
  static let snapshot = LogKind(unchecked: "snapshot")
}

/// One record of a log.
package struct LogRecord: Sendable, Hashable {
  /// The sequence number of the record. The first record of a log has 1, and there are no gaps.
  package let sequence: Int
  /// The kind of the record.
  package let kind: LogKind
  /// One JSON value in UTF-8, without line breaks.
  package let payload: [UInt8]

  package init(sequence: Int, kind: LogKind, payload: [UInt8]) {
    self.sequence = sequence
    self.kind = kind
    self.payload = payload
  }

  /// Reads the payload.
  ///
  /// - Throws: ``LogError/unreadable(sequence:problem:)``, also in place of the error of `read`.
  package func read<Content>(
    _ read: (JSONValue) throws(FragmentError) -> Content
  ) throws(LogError) -> Content {
    let json: JSONValue
    do { json = try JSONValue(parsing: payload, limits: .trusted) } catch {
      throw .unreadable(sequence: sequence, problem: "\(error)")
    }
    do { return try read(json) } catch {
      throw .unreadable(sequence: sequence, problem: "\(error)")
    }
  }
}

/// The content of a snapshot: the state after all records up to a sequence number.
package struct LogSnapshot: Sendable, Hashable {
  /// The sequence number of the last record that the snapshot includes; 0 for the state before the
  /// first record.
  package let sequence: Int
  /// The state, encoded by the owner of the log. Each record has the sequence number of the
  /// snapshot.
  package let state: [LogRecord]
  /// Earlier records that the state does not include, such as those of unknown kinds: unchanged and
  /// in order.
  package let kept: [LogRecord]

  /// Makes the content of a snapshot.
  package init(sequence: Int, state: [LogRecord], kept: [LogRecord]) {
    (self.sequence, self.state, self.kept) = (sequence, state, kept)
  }
}
