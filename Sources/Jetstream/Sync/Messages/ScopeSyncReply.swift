/// The server's answer to a client's ``ScopeSync``, or to several that were accepted one behind the other.
///
/// Nearly all answers accept change sets as they are. These have no fields but numbers: an answer is kept until it is
/// acknowledged, measured and written.
package struct ScopeSyncReply: Sendable, Hashable {
  /// The message's index.
  package var index: Int
  /// The index of the client's message; of several, that of the last one.
  package private(set) var replyTo: Int
  /// ``sequence``, or ``noSequence``.
  private var place: Int
  private var answered: UInt32 = 1
  /// The number of fragments of one change set that was accepted as it is; 0 for several.
  private var acceptedCount: UInt32
  /// The other fields of an answer that does more than accept; they are shared by its copies.
  private let details: Details?

  /// Creates the answer to a change set.
  package init(
    index: Int = 0, replyTo: Int, fragmentReplies: [FragmentReply], sequence: Int? = nil,
    effective: [SyncFragment]? = nil, outcome: CallOutcome? = nil
  ) {
    (self.index, self.replyTo) = (index, replyTo)
    place = sequence ?? Self.noSequence
    if effective == nil, outcome == nil, fragmentReplies.areAllPlain,
      let count = UInt32(exactly: fragmentReplies.count)
    {
      (acceptedCount, details) = (count, nil)
    } else {
      acceptedCount = 0
      details = Details(fragmentReplies, effective, outcome)
    }
  }

  private static let noSequence = Int.min

  /// The change set's sequence, or nil if no part of it was accepted; of several, that of the last one. Since version 2.
  package var sequence: Int? { place == Self.noSequence ? nil : place }

  /// The number of change sets that it answers: those of as many messages up to ``replyTo``, whose sequences follow each
  /// other. With more than one, each was accepted as it is. Since version 2.
  package var count: Int { Int(answered) }

  /// Returns true if it answers the client's message with an index.
  package func answers(_ messageIndex: Int) -> Bool {
    messageIndex <= replyTo && messageIndex > replyTo - count
  }

  /// One reply for each fragment, in the same order; none if it answers several change sets.
  package var fragmentReplies: [FragmentReply] {
    if let details { return details.fragmentReplies }
    return answered > 1 ? [] : Array(repeating: FragmentReply(), count: Int(acceptedCount))
  }

  /// The approximate number of bytes that the replies and the outcome take on the wire.
  var roughSizeOfFields: Int {
    guard let details else { return answered > 1 ? 16 : 3 * Int(acceptedCount) }
    return (details.outcome?.roughSize ?? 0) + details.fragmentReplies.roughSize
  }

  /// The changes that the server made instead of the submitted ones; nil if they are the same. Since version 2.
  package var effective: [SyncFragment]? { details?.effective }

  /// The outcome of the procedure; nil if none was called. Since version 2.
  package var outcome: CallOutcome? { details?.outcome }

  /// Answers one more change set, if this answer, and that one's, only accept: the one of the next message, at the next
  /// sequence. Returns false, and changes nothing, for any other.
  package mutating func accept(_ next: Int, at sequence: Int) -> Bool {
    guard details == nil, next == replyTo + 1, place != Self.noSequence, sequence == place + 1,
      answered < Self.most
    else { return false }
    (replyTo, place, acceptedCount) = (next, sequence, 0)
    answered += 1
    return true
  }

  /// The largest number of change sets that one message answers.
  package static let most = 10_000

  /// True if it says no more than that change sets were accepted, and their sequences.
  package var onlyAccepts: Bool { details == nil && place != Self.noSequence }

  /// Returns the reply without the sequence and the effect of the change set.
  package func withoutEffect() -> ScopeSyncReply {
    ScopeSyncReply(
      index: index, replyTo: replyTo, fragmentReplies: fragmentReplies, effective: [],
      outcome: outcome)
  }

  /// The fields of an answer that does more than accept.
  private final class Details: Sendable, Hashable {
    let fragmentReplies: [FragmentReply]
    let effective: [SyncFragment]?
    let outcome: CallOutcome?

    init(
      _ fragmentReplies: [FragmentReply], _ effective: [SyncFragment]?, _ outcome: CallOutcome?
    ) {
      (self.fragmentReplies, self.effective) = (fragmentReplies, effective)
      self.outcome = outcome
    }

    static func == (left: Details, right: Details) -> Bool {
      left === right
        || (left.fragmentReplies == right.fragmentReplies && left.effective == right.effective
          && left.outcome == right.outcome)
    }

    func hash(into hasher: inout Hasher) { hasher.combine(fragmentReplies.count) }
  }
}

extension ScopeSyncReply: CustomStringConvertible {
  /// The message as JSON.
  package var description: String { JSONValue.object(json).text }
}

extension ScopeSyncReply: MessageBody {
  static var type: String { "ScopeSyncReply" }

  init(_ fields: MessageFields) throws(MessageError) {
    let replyTo = try fields.wholeNumber("replyTo")
    let sequence = try fields.optionalNumber("sequence")
    if let count = try fields.optionalNumber("count") {
      guard let sequence, let reply = Self(accepting: count, upTo: replyTo, at: sequence) else {
        throw fields.invalid("count", "should be from 2 to \(Self.most), with a sequence")
      }
      self = reply
      index = fields.index
      return
    }
    let replies = try fields.elements("fragmentReplies", FragmentReply.init(json:))
    let effective =
      fields.has("effective") ? try fields.elements("effective", SyncFragment.init(json:)) : nil
    self.init(
      index: fields.index, replyTo: replyTo, fragmentReplies: replies, sequence: sequence,
      effective: effective, outcome: try fields.outcome())
  }

  /// Creates the answer that accepts a number of change sets; nil if the numbers are none of such an answer.
  init?(index: Int = 0, accepting count: Int, upTo replyTo: Int, at sequence: Int) {
    guard 2...Self.most ~= count, replyTo >= count, sequence >= count else { return nil }
    self.init(index: index, replyTo: replyTo, fragmentReplies: [], sequence: sequence)
    answered = UInt32(count)
  }

  func write<Sink: FieldSink & ~Copyable>(to sink: inout Sink) {
    sink.put("replyTo", replyTo)
    if answered > 1 {
      sink.put("count", count)
    } else {
      sink.put("fragmentReplies", fragmentReplies)
    }
    if let sequence { sink.put("sequence", sequence) }
    if let effective { sink.put("effective", effective) }
    if let outcome { sink.put("outcome", outcome.json) }
  }
}
