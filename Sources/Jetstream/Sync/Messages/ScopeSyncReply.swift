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
  /// The number of fragments if there is one change set, and each of its fragments was accepted as it is; 0 for any other
  /// answer.
  private var acceptedCount: UInt32
  /// The other fields of an answer that does more than accept; they are shared by its copies.
  private let details: Details?

  /// Creates the answer to a change set.
  ///
  /// - Parameter text: the text of `effective`, if it was made already.
  package init(
    index: Int = 0, replyTo: Int, fragmentReplies: [FragmentReply], sequence: Int? = nil,
    effective: [SyncFragment]? = nil, as text: FragmentsText? = nil, outcome: CallOutcome? = nil
  ) {
    (self.index, self.replyTo) = (index, replyTo)
    place = sequence ?? Self.noSequence
    let count = UInt32(exactly: fragmentReplies.count) ?? 0
    acceptedCount = fragmentReplies.areAllPlain ? count : 0
    if acceptedCount > 0, effective == nil, outcome == nil {
      details = nil
    } else {
      details = Details(
        replies: acceptedCount > 0 ? [] : fragmentReplies, effective: effective, text: text,
        outcome: outcome)
    }
  }

  /// Creates the answer that accepts several fragments of a change set as they are.
  init(
    index: Int, replyTo: Int, accepting count: Int, sequence: Int,
    effective: [SyncFragment]? = nil, outcome: CallOutcome? = nil
  ) {
    (self.index, self.replyTo, place) = (index, replyTo, sequence)
    acceptedCount = UInt32(clamping: count)
    details =
      effective == nil && outcome == nil
      ? nil : Details(replies: [], effective: effective, text: nil, outcome: outcome)
  }

  /// Creates the answer that accepts several change sets; nil if the numbers are none of such an answer.
  init?(index: Int, acceptingSets count: Int, upTo replyTo: Int, at sequence: Int) {
    guard 2...Self.mostSets ~= count, replyTo >= count, sequence >= count else { return nil }
    (self.index, self.replyTo, place) = (index, replyTo, sequence)
    (answered, acceptedCount, details) = (UInt32(count), 0, nil)
  }

  private static let noSequence = Int.min

  /// The number of fragments up to which one number accepts all of them. A reader makes a reply for each of them.
  static let mostAccepted = 1 << 20

  /// The largest number of change sets that one message answers.
  package static let mostSets = 10_000

  /// The change set's sequence, or nil if no part of it was accepted; of several, that of the last one. Since version 2.
  package var sequence: Int? { place == Self.noSequence ? nil : place }

  /// The number of change sets that it answers: those of as many messages up to ``replyTo``, whose sequences follow each
  /// other. With more than one, each was accepted as it is. Since version 2.
  package var count: Int { Int(answered) }

  /// Returns true if it answers the client's message with an index.
  package func answers(_ messageIndex: Int) -> Bool {
    messageIndex <= replyTo && messageIndex > replyTo - count
  }

  /// One reply for each fragment, in the same order; none if it answers several change sets. Cost: O(n).
  package var fragmentReplies: [FragmentReply] {
    acceptedCount > 0
      ? Array(repeating: FragmentReply(), count: Int(acceptedCount)) : details?.replies ?? []
  }

  /// The changes that the server made instead of the submitted ones; nil if they are the same. Since version 2.
  package var effective: [SyncFragment]? { details?.effective }

  /// The outcome of the procedure; nil if none was called. Since version 2.
  package var outcome: CallOutcome? { details?.outcome }

  /// The approximate number of bytes that the replies and the outcome take on the wire.
  var roughSizeOfFields: Int {
    (isNumber ? 16 : fragmentReplies.roughSize) + (details?.outcome?.roughSize ?? 0)
  }

  /// True if a number is sent in place of the replies. A reply of version 1 has no sequence.
  private var isNumber: Bool {
    answered > 1
      || (acceptedCount > 1 && acceptedCount <= Self.mostAccepted && place != Self.noSequence)
  }

  /// Answers one more change set, if this answer only accepts: the one of the next message, at the next sequence. Returns
  /// false, and changes nothing, for any other.
  package mutating func accept(_ next: Int, at sequence: Int) -> Bool {
    guard details == nil, next == replyTo + 1, place != Self.noSequence, sequence == place + 1,
      answered < Self.mostSets
    else { return false }
    (replyTo, place, acceptedCount) = (next, sequence, 0)
    answered += 1
    return true
  }

  /// Returns the reply without the sequence and the effect of the change set.
  package func withoutEffect() -> ScopeSyncReply {
    ScopeSyncReply(
      index: index, replyTo: replyTo, fragmentReplies: fragmentReplies, effective: [],
      outcome: outcome)
  }

  /// The fields of an answer that does more than accept.
  private final class Details: Sendable, Hashable {
    let replies: [FragmentReply]
    let effective: [SyncFragment]?
    /// The text of ``effective``, if it was made already.
    let text: FragmentsText?
    let outcome: CallOutcome?

    init(
      replies: [FragmentReply], effective: [SyncFragment]?, text: FragmentsText?,
      outcome: CallOutcome?
    ) {
      (self.replies, self.effective, self.text) = (replies, effective, text)
      self.outcome = outcome
    }

    static func == (left: Details, right: Details) -> Bool {
      left === right
        || (left.replies == right.replies && left.effective == right.effective
          && left.outcome == right.outcome)
    }

    func hash(into hasher: inout Hasher) { hasher.combine(replies.count) }
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
      guard let sequence,
        let reply = Self(index: fields.index, acceptingSets: count, upTo: replyTo, at: sequence)
      else {
        throw fields.invalid("count", "should be from 2 to \(Self.mostSets), beside a sequence")
      }
      self = reply
      return
    }
    let effective =
      fields.has("effective") ? try fields.elements("effective", SyncFragment.init(json:)) : nil
    let outcome = try fields.outcome()
    if !fields.has("fragmentReplies"), let count = try fields.optionalNumber("accepted") {
      guard (2...Self.mostAccepted).contains(count), let sequence else {
        throw fields.invalid(
          "accepted", "should be from 2 to \(Self.mostAccepted), beside a sequence")
      }
      self.init(
        index: fields.index, replyTo: replyTo, accepting: count, sequence: sequence,
        effective: effective, outcome: outcome)
      return
    }
    self.init(
      index: fields.index, replyTo: replyTo,
      fragmentReplies: try fields.elements("fragmentReplies", FragmentReply.init(json:)),
      sequence: sequence, effective: effective, outcome: outcome)
  }

  func write<Sink: FieldSink & ~Copyable>(to sink: inout Sink) {
    sink.put("replyTo", replyTo)
    if answered > 1 {
      sink.put("count", count)
    } else if isNumber {
      sink.put("accepted", Int(acceptedCount))
    } else {
      sink.put("fragmentReplies", fragmentReplies)
    }
    if let sequence { sink.put("sequence", sequence) }
    if let effective { sink.put("effective", effective, as: details?.text) }
    if let outcome { sink.put("outcome", outcome.json) }
  }
}
