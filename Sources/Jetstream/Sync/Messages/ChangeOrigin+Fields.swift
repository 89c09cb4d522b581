extension ChangeOrigin {
  /// Writes the fields that are not nil.
  package func write<Sink: FieldSink & ~Copyable>(to sink: inout Sink) {
    if let author { sink.put("author", .string(author)) }
    if let message { sink.put("message", .string(message)) }
    if let date { sink.put("date", .double(date.milliseconds / 1000)) }
    if let client { sink.put("madeBy", client) }
    if let seen { sink.put("seen", seen) }
  }
}

/// The place in an output at which an origin was written last. Change sets that a client has sent in one turn mostly have the
/// same one, which is copied from there.
package struct WrittenOrigin {
  private var origin = ChangeOrigin()
  private var place = 0..<0

  package init() {}

  /// Writes the fields of an origin that are not nil.
  mutating func write(_ origin: ChangeOrigin, to output: inout JSONOutput) {
    let start = output.count
    if self.origin.isWritten(as: origin) {
      output.append(copyOf: place)
    } else {
      origin.write(to: &output)
      self.origin = origin
    }
    place = start..<output.count
  }
}

extension ChangeOrigin {
  /// Returns true if another origin is written in the same bytes. Equal texts may be written in different ones.
  fileprivate func isWritten(as other: ChangeOrigin) -> Bool {
    func isSame(_ left: String?, _ right: String?) -> Bool {
      guard let left, let right else { return left == nil && right == nil }
      return left.hasBytes(of: right)
    }
    return date == other.date && client == other.client && seen == other.seen
      && isSame(author, other.author) && isSame(message, other.message)
  }
}
