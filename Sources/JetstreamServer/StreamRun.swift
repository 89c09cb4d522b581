import Jetstream

/// The change sets of a scope that became durable in one turn, as sessions of version 2 are sent them: the same bytes to
/// all of them. Each is encoded once, and so is the frame with all of them.
final class StreamRun {
  private let items: [StreamItem]
  private let scopeIndex: Int
  private let frameBytes: Int
  private lazy var messages = items.map { item in
    var bytes: [UInt8] = []
    item.message(scopeIndex: scopeIndex).write(to: &bytes)
    return bytes
  }
  /// All change sets, in frames; mostly that is one.
  private(set) lazy var frames = makeFrames(from: 0)
  /// The place in the stream behind the last change set.
  let end: StreamPlace

  /// - Parameters:
  ///   - items: at least one change set; their sequences follow each other.
  ///   - host: their scope.
  ///   - frameBytes: the size of a frame with several messages, approximately.
  init(_ items: [StreamItem], of host: ScopeHost, frameBytes: Int) {
    (self.items, self.frameBytes) = (items, frameBytes)
    scopeIndex = host.audience.scopeIndex
    end = StreamPlace(items[items.count - 1].sequence, in: host.stream)
  }

  /// The sequence in front of the first change set.
  var start: Int { items[0].sequence - 1 }

  /// Returns the change sets after a sequence, in frames.
  func frames(after sequence: Int) -> [[UInt8]] {
    let start = sequence + 1 - items[0].sequence
    return start <= 0 ? frames : makeFrames(from: start)
  }

  private func makeFrames(from start: Int) -> [[UInt8]] {
    var frames: [[UInt8]] = []
    var frame: [UInt8] = []
    let messages = messages[min(start, messages.count)...]
    frame.reserveCapacity(min(frameBytes, messages.reduce(2) { $0 + $1.count + 1 }))
    for message in messages {
      if !frame.isEmpty, frame.count + message.count > frameBytes {
        frame.append(UInt8(ascii: "]"))
        frames.append(frame)
        frame = []
      }
      frame.append(UInt8(ascii: frame.isEmpty ? "[" : ","))
      frame += message
    }
    if frame.isEmpty { return frames }
    frame.append(UInt8(ascii: "]"))
    return frames + [frame]
  }
}

extension StreamItem {
  /// Returns the message that tells the change set. It has no index: clients acknowledge its sequence.
  ///
  /// - Parameter number: the number that the receiver has given the change set, if it is its own.
  func message(scopeIndex: Int, asOwn number: Int? = nil) -> Message {
    var message = ScopeSync(scopeIndex: scopeIndex, fragments: fragments)
    (message.sequence, message.number, message.origin) = (sequence, number, origin)
    message.text = text
    return .scopeSync(message)
  }
}
