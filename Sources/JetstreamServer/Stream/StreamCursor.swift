/// The places in a scope's stream up to which a session was sent it, and up to which the client has acknowledged it.
struct StreamCursor {
  /// The sequence up to which everything was queued.
  private(set) var told: Int
  /// The place up to which the client has everything, or will have it with the messages that the session's channel keeps.
  /// The rest is lost with a connection.
  private(set) var acknowledged: StreamPlace
  /// The part of the stream that was queued and is not acknowledged.
  private(set) var waiting = StreamAmount()
  /// The bytes that were left out of what was queued and is not acknowledged, with the sequence up to which: the client
  /// was sent less than the stream has.
  private var omissions: [(upTo: Int, bytes: Int)] = []
  /// The sum of ``omissions``.
  private var omittedBytes = 0
  /// The size in bytes of all change sets that were ever compared with the full state, or came before.
  var comparedBytes = 0

  init(at sequence: Int, in stream: ScopeStream) {
    told = sequence
    acknowledged = StreamPlace(sequence, in: stream)
  }

  /// Notes that everything up to a sequence was queued.
  mutating func tell(upTo sequence: Int, in stream: ScopeStream) {
    told = max(told, sequence)
    measure(stream)
  }

  /// Notes that everything up to a place was queued.
  mutating func tell(upTo place: StreamPlace) {
    told = max(told, place.sequence)
    waiting = StreamAmount(
      sets: told - acknowledged.sequence,
      bytes: max(0, place.totalBytes - acknowledged.totalBytes - omittedBytes))
  }

  /// Notes that everything up to a sequence was queued, with `sent` bytes in place of those that the stream has.
  mutating func tell(upTo sequence: Int, sent: Int, in stream: ScopeStream) {
    let omitted = stream.totalBytes(upTo: sequence) - stream.totalBytes(upTo: told) - sent
    if omitted > 0 {
      omissions.append((sequence, omitted))
      omittedBytes += omitted
    }
    tell(upTo: sequence, in: stream)
  }

  /// Notes that the client has applied everything up to a sequence. That may be more than it was told: it has earlier
  /// replies to its own change sets.
  mutating func acknowledge(upTo sequence: Int, in stream: ScopeStream) {
    told = max(told, sequence)
    acknowledged = StreamPlace(sequence, in: stream)
    if !omissions.isEmpty {
      omissions.removeAll { $0.upTo <= sequence }
      omittedBytes = omissions.reduce(0) { $0 + $1.bytes }
    }
    measure(stream)
  }

  /// Goes back to what is acknowledged.
  mutating func rewind() {
    told = acknowledged.sequence
    waiting = StreamAmount()
    (omissions, omittedBytes, comparedBytes) = ([], 0, 0)
  }

  private mutating func measure(_ stream: ScopeStream) {
    waiting = StreamAmount(
      sets: told - acknowledged.sequence,
      bytes: max(0, stream.totalBytes(upTo: told) - acknowledged.totalBytes - omittedBytes))
  }
}

/// A place in a scope's stream.
struct StreamPlace {
  /// The sequence of the last change set before it.
  let sequence: Int
  /// The size in bytes of all change sets before it, approximately.
  let totalBytes: Int

  init(_ sequence: Int, in stream: ScopeStream) {
    (self.sequence, totalBytes) = (sequence, stream.totalBytes(upTo: sequence))
  }
}

/// An amount of change sets.
struct StreamAmount: Equatable {
  var sets = 0
  /// The size in bytes, approximately.
  var bytes = 0

  static func += (amount: inout StreamAmount, more: StreamAmount) {
    amount.sets += more.sets
    amount.bytes += more.bytes
  }

  static func -= (amount: inout StreamAmount, less: StreamAmount) {
    amount.sets -= less.sets
    amount.bytes -= less.bytes
  }
}
