/// The server's answer to a client's ``ScopeSync``.
///
/// Its copies share the fields: it is kept until it is acknowledged, measured and written.
package struct ScopeSyncReply: Sendable, Hashable {
  /// The message's index.
  package var index: Int
  private let content: Content

  /// Creates a reply.
  package init(
    index: Int = 0, replyTo: Int, fragmentReplies: [FragmentReply], sequence: Int? = nil,
    effective: [SyncFragment]? = nil, outcome: CallOutcome? = nil
  ) {
    self.index = index
    content = Content(
      replyTo: replyTo, fragmentReplies: fragmentReplies, sequence: sequence,
      effective: effective, outcome: outcome)
  }

  /// The index of the client's message.
  package var replyTo: Int { content.replyTo }

  /// One reply for each fragment, in the same order.
  package var fragmentReplies: [FragmentReply] { content.fragmentReplies }

  /// The change set's sequence, or nil if no part of it was accepted. Since version 2.
  package var sequence: Int? { content.sequence }

  /// The changes that the server made instead of the submitted ones; nil if they are the same. Since version 2.
  package var effective: [SyncFragment]? { content.effective }

  /// The outcome of the procedure; nil if none was called. Since version 2.
  package var outcome: CallOutcome? { content.outcome }

  /// Returns the reply without the sequence and the effect of the change set.
  package func withoutEffect() -> ScopeSyncReply {
    ScopeSyncReply(
      index: index, replyTo: replyTo, fragmentReplies: fragmentReplies, effective: [],
      outcome: outcome)
  }

  package static func == (left: ScopeSyncReply, right: ScopeSyncReply) -> Bool {
    let (a, b) = (left.content, right.content)
    return left.index == right.index
      && (a === b
        || (a.replyTo == b.replyTo && a.fragmentReplies == b.fragmentReplies
          && a.sequence == b.sequence && a.effective == b.effective && a.outcome == b.outcome))
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(index)
    hasher.combine(content.replyTo)
    hasher.combine(content.sequence)
  }

  /// The fields of a reply, but for its index, which it gets when it is sent.
  private final class Content: Sendable {
    let replyTo: Int
    let fragmentReplies: [FragmentReply]
    let sequence: Int?
    let effective: [SyncFragment]?
    let outcome: CallOutcome?

    init(
      replyTo: Int, fragmentReplies: [FragmentReply], sequence: Int?,
      effective: [SyncFragment]?, outcome: CallOutcome?
    ) {
      (self.replyTo, self.sequence) = (replyTo, sequence)
      self.fragmentReplies = fragmentReplies
      (self.effective, self.outcome) = (effective, outcome)
    }
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
    let replies = try fields.elements("fragmentReplies", FragmentReply.init(json:))
    let sequence = try fields.optionalNumber("sequence")
    let effective =
      fields.has("effective") ? try fields.elements("effective", SyncFragment.init(json:)) : nil
    self.init(
      index: fields.index, replyTo: replyTo, fragmentReplies: replies, sequence: sequence,
      effective: effective, outcome: try fields.outcome())
  }

  func write<Sink: FieldSink & ~Copyable>(to sink: inout Sink) {
    sink.put("replyTo", replyTo)
    sink.put("fragmentReplies", fragmentReplies)
    if let sequence { sink.put("sequence", sequence) }
    if let effective { sink.put("effective", effective) }
    if let outcome { sink.put("outcome", outcome.json) }
  }
}
