import Jetstream

/// The change sets of a scope that became durable in one turn, as sessions of version 2 are sent them: the same bytes to
/// all of them. Each is encoded once.
final class StreamRun {
  private let scopeIndex: Int
  private let frameBytes: Int
  // No access to these is open while other code runs: writing a message reads nothing but its change set.
  @exclusivity(unchecked) private(set) var items: [StreamItem] = []
  /// The messages of the first ``items``, with commas between them, as far as they were needed.
  @exclusivity(unchecked) private var text: [UInt8] = []
  /// For each of these messages, its end in the text.
  @exclusivity(unchecked) private var ends: [Int] = []

  /// - Parameters:
  ///   - scopeIndex: the number by which sessions of version 2 name the scope.
  ///   - frameBytes: the size of a frame with several messages, approximately.
  init(scopeIndex: Int, frameBytes: Int) {
    (self.scopeIndex, self.frameBytes) = (scopeIndex, frameBytes)
  }

  /// Adds the change set that follows the last one.
  func append(_ item: StreamItem) { items.append(item) }

  /// The sequence in front of the first change set.
  var start: Int { items[0].sequence - 1 }

  /// The sequence of the last change set.
  var last: Int { items[items.count - 1].sequence }

  /// Returns the change sets after one sequence up to another, in parts that are not too large for a frame.
  func parts(after sequence: Int, upTo last: Int) -> [Part] {
    let begin = max(0, sequence - start)
    let end = min(items.count, last - start)
    guard begin < end else { return [] }
    encode(upTo: end)
    var parts: [Part] = []
    var first = begin
    for at in begin..<end where at > first && ends[at] - place(of: first) > frameBytes {
      parts.append(Part(run: self, messages: first..<at))
      first = at
    }
    parts.append(Part(run: self, messages: first..<end))
    return parts
  }

  private func encode(upTo end: Int) {
    while ends.count < end {
      if !ends.isEmpty { text.append(UInt8(ascii: ",")) }
      // Many short messages are written at once.
      let (start, first) = (text.count, ends.count)
      let rest = items[first..<end]
      let count = max(1, rest.prefix { $0.text?.isShort == true }.count)
      text.append(size: 256 + 256 * count) { output in
        var origin = WrittenOrigin()
        for item in rest.prefix(count) {
          if output.count > 0 { output.append(",") }
          ScopeSync.write(
            telling: item.fragments, as: item.text, at: item.sequence, by: item.origin,
            after: &origin, inScope: scopeIndex, to: &output)
          if count > 1 { ends.append(start + output.count) }
        }
      }
      if count == 1 { ends.append(text.count) }
    }
  }

  private func place(of message: Int) -> Int { message == 0 ? 0 : ends[message - 1] + 1 }

  /// Some of the messages, one behind the other.
  struct Part {
    fileprivate let run: StreamRun
    fileprivate let messages: Range<Int>

    private var range: Range<Int> {
      run.place(of: messages.lowerBound)..<run.ends[messages.upperBound - 1]
    }

    /// The number of bytes.
    var size: Int { range.count }

    /// Appends the messages, with commas between them.
    func write(to frame: inout [UInt8]) { frame += run.text[range] }
  }
}

extension StreamItem {
  /// Returns the message that tells the change set. It has no index: clients acknowledge its sequence.
  ///
  /// - Parameter number: the number that the receiver has given the change set, if it is its own.
  func message(scopeIndex: Int, asOwn number: Int? = nil) -> Message {
    .scopeSync(
      ScopeSync(
        scopeIndex: scopeIndex, fragments: fragments, text: text, number: number,
        sequence: sequence, origin: origin))
  }
}
