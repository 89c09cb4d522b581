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
/// with one call; a large payload that is sent to many peers exists once for all of them, and so does a small frame that
/// goes out alone.
struct OutboundQueue: Sendable {
  /// Payloads up to this size are copied.
  private static let smallPayload = 4 << 10
  /// The largest size of a chunk of small frames.
  private static let chunkSize = 64 << 10
  /// The largest number of chunks that one call writes.
  private static let gathered = 16

  /// The first chunk. It is mostly the only one, which takes no array of chunks then.
  private var front: [UInt8] = []
  /// The number of bytes of the first chunk that were written.
  private var offset = 0
  /// The other chunks, from ``next`` on.
  private var rest: [[UInt8]] = []
  private var next = 0
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
      put(frame.payload)
      isTailOpen = false
    }
  }

  /// Puts another queue, of which nothing was written yet, at the end.
  mutating func append(_ other: OutboundQueue) {
    if other.isEmpty { return }
    put(other.front)
    for chunk in other.rest { put(chunk) }
    isTailOpen = other.isTailOpen
  }

  private mutating func collect(_ bytes: [UInt8]) {
    guard !bytes.isEmpty else { return }
    let isInFront = rest.isEmpty
    let tail = isInFront ? front.count : rest[rest.count - 1].count
    guard isTailOpen, tail + bytes.count <= Self.chunkSize else {
      put(bytes)
      isTailOpen = true
      return
    }
    if isInFront { front += bytes } else { rest[rest.count - 1] += bytes }
    count += bytes.count
  }

  /// Puts a chunk that is not empty at the end.
  private mutating func put(_ chunk: [UInt8]) {
    if isEmpty { front = chunk } else { rest.append(chunk) }
    count += chunk.count
  }

  /// Writes once to `descriptor` and removes what was written. Returns the number of bytes, or a negative `errno`.
  mutating func write(to descriptor: Int32) -> Int {
    let written = rest.isEmpty ? writeFront(to: descriptor) : writeAll(to: descriptor)
    if written == count {
      self = OutboundQueue()
    } else if written > 0 {
      drop(written)
    }
    return written
  }

  private func writeFront(to descriptor: Int32) -> Int {
    front.withUnsafeBytes {
      Platform.send(descriptor, UnsafeRawBufferPointer(rebasing: $0[offset...]))
    }
  }

  private func writeAll(to descriptor: Int32) -> Int {
    let end = min(rest.count, next + Self.gathered - 1)
    var vectors: [iovec] = []
    vectors.reserveCapacity(end - next + 1)
    return Self.gather(front, rest[next..<end], offset: offset, into: &vectors) {
      Platform.send(descriptor, &$0)
    }
  }

  /// Collects pointers to the chunks. Nests one borrow per chunk, so that every pointer is valid while `body` runs.
  private static func gather(
    _ chunk: [UInt8], _ others: ArraySlice<[UInt8]>, offset: Int, into vectors: inout [iovec],
    body: (inout [iovec]) -> Int
  ) -> Int {
    chunk.withUnsafeBytes { raw in
      let part = UnsafeRawBufferPointer(rebasing: raw[offset...])
      vectors.append(
        iovec(iov_base: UnsafeMutableRawPointer(mutating: part.baseAddress), iov_len: part.count))
      guard let following = others.first else { return body(&vectors) }
      return gather(following, others.dropFirst(), offset: 0, into: &vectors, body: body)
    }
  }

  private mutating func drop(_ written: Int) {
    count -= written
    offset += written
    while offset >= front.count {
      offset -= front.count
      front = rest[next]
      rest[next] = []
      next += 1
    }
    if next == rest.count {
      (rest, next) = ([], 0)
    } else if next > 64, next * 2 > rest.count {
      rest.removeFirst(next)
      next = 0
    }
  }
}
