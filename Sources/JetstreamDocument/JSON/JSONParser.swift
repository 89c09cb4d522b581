/// Reads one JSON text from bytes.
///
/// Recursive descent, with the depth bounded by ``JSONLimits/maxDepth``. A byte of zero stands for
/// the end of the text while looking ahead: nothing outside a string begins with it.
package struct JSONParser: ~Copyable {
  let bytes: UnsafeBufferPointer<UInt8>
  package let maxDepth: Int

  /// The number of bytes read so far.
  package var position = 0

  /// True as long as the bytes were read as a writer of this package writes what they say: without white space, escapes that
  /// need not be, numbers in other forms, and capitals in UUIDs. What stands there can be passed on as it is then.
  package var isCanonical = true

  /// The strings of keys and names.
  var keys = JSONKeys()

  /// The members and the elements of what is being read, inner ones after outer ones.
  private var members = JSONStack<JSONObject.Member>()
  private var elements = JSONStack<JSONValue>()

  /// Reads the whole of `bytes` as one value.
  static func parse(
    _ bytes: UnsafeBufferPointer<UInt8>, limits: JSONLimits
  ) -> Result<JSONValue, JSONError> {
    parse(inPlace: bytes, limits: limits) { parser throws(JSONError) in try parser.value(depth: 0) }
  }

  /// Reads the whole of `bytes` as the content that `read` takes from it, with white space around.
  static func parse<Content>(
    inPlace bytes: UnsafeBufferPointer<UInt8>, limits: JSONLimits,
    _ read: (inout JSONParser) throws(JSONError) -> Content
  ) -> Result<Content, JSONError> {
    guard bytes.count <= limits.maxBytes else {
      return .failure(JSONError(.tooLong, at: Swift.max(limits.maxBytes, 0)))
    }
    var parser = JSONParser(bytes, maxDepth: Swift.min(limits.maxDepth, 256))
    do throws(JSONError) {
      let content = try read(&parser)
      parser.skipWhiteSpace()
      guard parser.position == bytes.count else { throw parser.failure(.trailingCharacters) }
      return .success(content)
    } catch {
      return .failure(error)
    }
  }

  /// Reads the whole of `bytes`, with white space around. `read` keeps what it takes from them. Callers in other
  /// targets get code for no particular type of content, which would cost as much as reading a short message.
  package static func parse(
    inPlace bytes: UnsafeBufferPointer<UInt8>, limits: JSONLimits,
    _ read: (inout JSONParser) throws(JSONError) -> Void
  ) -> JSONError? {
    let result: Result<Void, JSONError> = parse(inPlace: bytes, limits: limits, read)
    if case .failure(let error) = result { return error }
    return nil
  }

  /// Reads the whole of `bytes`, which are copied if they do not stand in one piece.
  package static func parse<Content>(
    _ bytes: some Collection<UInt8>, limits: JSONLimits,
    _ read: (inout JSONParser) throws(JSONError) -> Content
  ) -> Result<Content, JSONError> {
    let inPlace = bytes.withContiguousStorageIfAvailable { bytes in
      parse(inPlace: bytes, limits: limits, read)
    }
    if let inPlace { return inPlace }
    let copy = Array(bytes)
    return copy.withUnsafeBufferPointer { parse(inPlace: $0, limits: limits, read) }
  }

  private init(_ bytes: UnsafeBufferPointer<UInt8>, maxDepth: Int) {
    self.bytes = bytes
    self.maxDepth = maxDepth
  }

  /// Passes bytes that were read to a closure.
  package func bytes<Result>(
    in range: Range<Int>, _ body: (UnsafeBufferPointer<UInt8>) -> Result
  ) -> Result {
    body(UnsafeBufferPointer(rebasing: bytes[range]))
  }

  /// The byte at the position, or zero at the end.
  package var next: UInt8 {
    @inline(__always) get { position < bytes.count ? bytes[position] : 0 }
  }

  /// An error at the position, or at the end if that is where the position is.
  func failure(_ reason: JSONError.Reason = .unexpectedCharacter) -> JSONError {
    JSONError(position < bytes.count ? reason : .unexpectedEnd, at: position)
  }

  @inline(__always)
  package mutating func skipWhiteSpace() {
    while position < bytes.count, bytes[position] <= 0x20 {
      switch bytes[position] {
      case 0x20, 0x0A, 0x0D, 0x09:
        position += 1
        isCanonical = false
      default: return
      }
    }
  }

  /// Reads any value, which stands inside of `depth` arrays and objects.
  package mutating func value(depth: Int) throws(JSONError) -> JSONValue {
    skipWhiteSpace()
    switch next {
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "{"): return .object(try object(depth: depth + 1))
    case UInt8(ascii: "["): return .array(try array(depth: depth + 1))
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
    case UInt8(ascii: "t"):
      try literal("true")
      return .bool(true)
    case UInt8(ascii: "f"):
      try literal("false")
      return .bool(false)
    case UInt8(ascii: "n"):
      try literal("null")
      return .null
    default: throw failure()
    }
  }

  private mutating func literal(_ text: StaticString) throws(JSONError) {
    for offset in 0..<text.utf8CodeUnitCount {
      guard next == text.utf8Start[offset] else { throw failure() }
      position += 1
    }
  }

  private mutating func array(depth: Int) throws(JSONError) -> [JSONValue] {
    let start = elements.count
    try eachElement(depth: depth) { parser throws(JSONError) in
      let element = try parser.value(depth: depth)
      parser.elements.push(element)
    }
    return elements.pop(from: start)
  }

  /// Reads an array whose opening bracket is the next byte; `read` takes one element each time.
  @inline(__always)
  package mutating func eachElement(
    depth: Int, _ read: (inout JSONParser) throws(JSONError) -> Void
  ) throws(JSONError) {
    guard depth <= maxDepth else { throw failure(.tooDeep) }
    position += 1
    skipWhiteSpace()
    if next == UInt8(ascii: "]") {
      position += 1
      return
    }
    while true {
      try read(&self)
      skipWhiteSpace()
      switch next {
      case UInt8(ascii: ","): position += 1
      case UInt8(ascii: "]"):
        position += 1
        return
      default: throw failure()
      }
    }
  }

  /// Reads an object whose opening brace is the next byte.
  package mutating func object(depth: Int) throws(JSONError) -> JSONObject {
    try object(depth: depth) { parser, _ throws(JSONError) in try parser.value(depth: depth) }
  }

  /// Reads an object whose opening brace is the next byte; `read` takes the value of each key.
  @inline(__always)
  package mutating func object(
    depth: Int, _ read: (inout JSONParser, String) throws(JSONError) -> JSONValue
  ) throws(JSONError) -> JSONObject {
    guard depth <= maxDepth else { throw failure(.tooDeep) }
    position += 1
    skipWhiteSpace()
    if next == UInt8(ascii: "}") {
      position += 1
      return JSONObject()
    }
    let first = members.count
    var seen = SeenKeys(evictions: keys.evictions)
    while true {
      skipWhiteSpace()
      guard next == UInt8(ascii: "\"") else { throw failure() }
      let start = position
      let (key, bit) = try key()
      skipWhiteSpace()
      guard next == UInt8(ascii: ":") else { throw failure() }
      position += 1
      guard isNew(key, bit, since: first, &seen) else {
        throw JSONError(.duplicateKey(key), at: start)
      }
      let value = try read(&self, key)
      skipWhiteSpace()
      if next == UInt8(ascii: "}"), members.count == first {
        position += 1
        return JSONObject(only: JSONObject.Member(key: key, value: value))
      }
      members.push(JSONObject.Member(key: key, value: value))
      switch next {
      case UInt8(ascii: ","): position += 1
      case UInt8(ascii: "}"):
        position += 1
        return JSONObject(unique: members.pop(from: first), positions: seen.positions)
      default: throw failure()
      }
    }
  }
}

// MARK: Duplicate keys

extension JSONParser {
  /// The keys that an object had so far.
  private struct SeenKeys {
    /// The bits of all keys, while these suffice.
    var bits: UInt64 = 0
    var isByBits = true
    let evictions: Int
    /// The index of each key, once the keys are looked up in this way.
    var positions: [String: Int]?
  }

  /// Returns true if the object whose first member is at `first` does not have a key yet.
  @inline(__always)
  private func isNew(
    _ key: String, _ bit: UInt64, since first: Int, _ seen: inout SeenKeys
  ) -> Bool {
    if seen.isByBits, bit != 0, keys.evictions == seen.evictions {
      guard seen.bits & bit == 0 else { return false }
      seen.bits |= bit
      return true
    }
    return isNewByText(key, since: first, &seen)
  }

  @inline(never)
  private func isNewByText(_ key: String, since first: Int, _ seen: inout SeenKeys) -> Bool {
    seen.isByBits = false
    return members.withElements(from: first) { members in
      if members.count < JSONObject.indexedCount { return !members.contains { $0.key == key } }
      if seen.positions == nil {
        var positions: [String: Int] = [:]
        positions.reserveCapacity(members.count * 2)
        for (position, member) in members.enumerated() { positions[member.key] = position }
        seen.positions = positions
      }
      return seen.positions!.updateValue(members.count, forKey: key) == nil
    }
  }
}
