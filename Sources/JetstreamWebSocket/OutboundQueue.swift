#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The bytes a socket has yet to write, in chunks that share the storage of large payloads.
///
/// Headers and small payloads are copied together into one chunk, so that many small frames go out
/// with one call; a large payload that is sent to many peers exists once for all of them.
struct OutboundQueue: Sendable {
  /// Payloads up to this size are copied.
  private static let smallPayload = 4 << 10
  /// The largest size of a chunk of small frames.
  private static let chunkSize = 64 << 10
  /// The largest number of chunks that one call writes.
  private static let gathered = 16

  private var chunks: [[UInt8]] = []
  private var first = 0
  /// The number of bytes of the first chunk that were written.
  private var offset = 0
  /// True if the last chunk collects small frames and may grow.
  private var isTailOpen = false

  /// The number of bytes that wait to be written.
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  /// Puts a frame at the end. Linear in the header and in a small payload, constant otherwise.
  mutating func append(_ frame: EncodedFrame) {
    collect(frame.head)
    if frame.payload.count <= Self.smallPayload {
      collect(frame.payload)
    } else {
      chunks.append(frame.payload)
      isTailOpen = false
    }
    count += frame.count
  }

  /// Puts another queue, of which nothing was written yet, at the end.
  mutating func append(_ other: OutboundQueue) {
    chunks += other.chunks[other.first...]
    isTailOpen = other.isEmpty ? isTailOpen : other.isTailOpen
    count += other.count
  }

  private mutating func collect(_ bytes: [UInt8]) {
    guard !bytes.isEmpty else { return }
    if isTailOpen, chunks[chunks.count - 1].count + bytes.count <= Self.chunkSize {
      chunks[chunks.count - 1].append(contentsOf: bytes)
    } else {
      chunks.append(bytes)
      isTailOpen = true
    }
  }

  /// Writes once to `descriptor` and removes what was written. Returns the number of bytes, or a negative `errno`.
  mutating func write(to descriptor: Int32) -> Int {
    let end = min(chunks.count, first + Self.gathered)
    var vectors: [iovec] = []
    vectors.reserveCapacity(end - first)
    let written = Self.gather(chunks[first..<end], offset: offset, into: &vectors) {
      Platform.send(descriptor, &$0)
    }
    if written > 0 { drop(written) }
    return written
  }

  /// Collects pointers to the chunks. Nests one borrow per chunk, so that every pointer is valid while `body` runs.
  private static func gather(
    _ chunks: ArraySlice<[UInt8]>, offset: Int, into vectors: inout [iovec],
    body: (inout [iovec]) -> Int
  ) -> Int {
    guard let chunk = chunks.first else { return body(&vectors) }
    return chunk.withUnsafeBytes { raw in
      let part = UnsafeRawBufferPointer(rebasing: raw[offset...])
      vectors.append(
        iovec(iov_base: UnsafeMutableRawPointer(mutating: part.baseAddress), iov_len: part.count))
      return gather(chunks.dropFirst(), offset: 0, into: &vectors, body: body)
    }
  }

  private mutating func drop(_ written: Int) {
    count -= written
    var left = written
    while left > 0 {
      let rest = chunks[first].count - offset
      if left < rest {
        offset += left
        break
      }
      left -= rest
      chunks[first] = []
      first += 1
      offset = 0
    }
    if first == chunks.count {
      self = OutboundQueue()
    } else if first > 64, first * 2 > chunks.count {
      chunks.removeFirst(first)
      first = 0
    }
  }
}
