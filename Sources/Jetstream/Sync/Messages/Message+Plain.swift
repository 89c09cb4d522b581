import Foundation

/// Reading the most frequent messages, change sets and their answers, without making JSON of their fields first.
extension JSONParser {
  /// Reads a message in the text in which ``Message/write(to:)`` writes it: without white space, the fields in their
  /// order. Nil for all other text, with the position somewhere in it; that is read field by field.
  ///
  /// It throws the error that reading the value would throw: everything before that position is valid.
  mutating func plainMessage(depth: Int) throws(JSONError) -> Message? {
    guard depth < maxDepth, take(#"{"type":"ScopeSync"#) else { return nil }
    let isReply = take("Reply")
    guard take(#"","index":"#), let index = takeNumber() else { return nil }
    return isReply
      ? plainReply(index, depth: depth + 3).map { .scopeSyncReply($0) }
      : try plainSync(index, depth: depth + 2).map { .scopeSync($0) }
  }

  private mutating func plainSync(
    _ index: Int, depth: Int
  ) throws(JSONError) -> ScopeSync? {
    guard take(#","scopeIndex":"#), let scopeIndex = takeNumber(), take(#","fragments":"#),
      next == UInt8(ascii: "[")
    else { return nil }
    let start = position
    isCanonical = true
    guard case .success(let fragments) = try fragments(depth: depth) else { return nil }
    let written = start..<position
    let isWritten = isCanonical && fragments.count == 1
    let isAtomic = take(#","atomic":true"#)
    var number: Int?
    if take(#","number":"#) {
      guard let value = takeNumber() else { return nil }
      number = value
    }
    var sequence: Int?
    if take(#","sequence":"#) {
      guard let value = takeNumber() else { return nil }
      sequence = value
    }
    var decided: Int?
    if take(#","decided":"#) {
      guard let value = takeNumber() else { return nil }
      decided = value
    }
    guard let origin = try plainOrigin(), take("}") else { return nil }
    // A server that passes a client's change set on writes it again in the same bytes.
    let text =
      isWritten && number != nil && sequence == nil
      ? bytes(in: written) { FragmentsText(ofOne: $0) } : nil
    return ScopeSync(
      index: index, scopeIndex: scopeIndex, fragments: fragments, text: text,
      atomic: isAtomic ? true : nil, number: number, sequence: sequence, decided: decided,
      origin: origin)
  }

  private mutating func plainOrigin() throws(JSONError) -> ChangeOrigin? {
    var origin = ChangeOrigin()
    if next == UInt8(ascii: "}") { return origin }
    if take(#","author":"#) {
      guard let author = try plainText(upTo: ChangeOrigin.longestAuthor) else { return nil }
      origin.author = author
    }
    if take(#","message":"#) {
      guard let message = try plainText(upTo: ChangeOrigin.longestMessage) else { return nil }
      origin.message = message
    }
    if take(#","date":"#) {
      guard case UInt8(ascii: "0")...UInt8(ascii: "9") = next,
        let seconds = Double._decode(try self.number())
      else { return nil }
      origin.date = Date(timeIntervalSince1970: seconds)
    }
    if take(#","madeBy":"#) {
      guard let client = takeUUID() else { return nil }
      origin.client = client
    }
    if take(#","seen":"#) {
      guard let seen = takeNumber() else { return nil }
      origin.seen = seen
    }
    return origin
  }

  private mutating func plainText(upTo limit: Int) throws(JSONError) -> String? {
    guard next == UInt8(ascii: "\"") else { return nil }
    let text = try string()
    return text.utf8.count <= limit ? text : nil
  }

  /// Reads an answer that accepts every fragment as it is, or several change sets.
  private mutating func plainReply(_ index: Int, depth: Int) -> ScopeSyncReply? {
    guard depth <= maxDepth, take(#","replyTo":"#), let replyTo = takeNumber() else { return nil }
    if take(#","count":"#) {
      guard let count = takeNumber(), take(#","sequence":"#), let sequence = takeNumber(), take("}")
      else { return nil }
      return ScopeSyncReply(index: index, acceptingSets: count, upTo: replyTo, at: sequence)
    }
    if take(#","accepted":"#) {
      guard let count = takeNumber(), (2...ScopeSyncReply.mostAccepted).contains(count),
        take(#","sequence":"#), let sequence = takeNumber(), take("}")
      else { return nil }
      return ScopeSyncReply(index: index, replyTo: replyTo, accepting: count, sequence: sequence)
    }
    guard take(#","fragmentReplies":["#) else { return nil }
    var replies: [FragmentReply] = []
    repeat {
      guard take("{}") else { return nil }
      replies.append(FragmentReply())
    } while take(",")
    guard take(#"],"sequence":"#), let sequence = takeNumber(), take("}") else { return nil }
    return ScopeSyncReply(
      index: index, replyTo: replyTo, fragmentReplies: replies, sequence: sequence)
  }
}
