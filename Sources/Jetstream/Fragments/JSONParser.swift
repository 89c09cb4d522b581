/// Reads one JSON text from bytes.
///
/// Recursive descent, with the depth bounded by ``JSONLimits/maxDepth``. A byte of zero stands for
/// the end of the text while looking ahead: nothing outside a string begins with it.
struct JSONParser {
  let bytes: UnsafeBufferPointer<UInt8>
  private let maxDepth: Int

  /// How many members the last object had at each depth: the next one there is likely alike.
  private var memberCounts = [Int](repeating: 4, count: 16)

  /// The number of bytes read so far.
  var position = 0

  /// Reads the whole of `bytes` as one value.
  static func parse(
    _ bytes: UnsafeBufferPointer<UInt8>, limits: JSONLimits
  ) -> Result<JSONValue, JSONError> {
    guard bytes.count <= limits.maxBytes else {
      return .failure(JSONError(.tooLong, at: Swift.max(limits.maxBytes, 0)))
    }
    var parser = JSONParser(bytes, maxDepth: Swift.min(limits.maxDepth, 256))
    do throws(JSONError) {
      return .success(try parser.document())
    } catch {
      return .failure(error)
    }
  }

  private init(_ bytes: UnsafeBufferPointer<UInt8>, maxDepth: Int) {
    self.bytes = bytes
    self.maxDepth = maxDepth
  }

  /// The byte at the position, or zero at the end.
  var next: UInt8 {
    @inline(__always) get { position < bytes.count ? bytes[position] : 0 }
  }

  /// An error at the position, or at the end if that is where the position is.
  func failure(_ reason: JSONError.Reason = .unexpectedCharacter) -> JSONError {
    JSONError(position < bytes.count ? reason : .unexpectedEnd, at: position)
  }

  private mutating func document() throws(JSONError) -> JSONValue {
    let value = try value(depth: 0)
    skipWhiteSpace()
    guard position == bytes.count else { throw failure(.trailingCharacters) }
    return value
  }

  @inline(__always)
  private mutating func skipWhiteSpace() {
    while position < bytes.count {
      switch bytes[position] {
      case 0x20, 0x0A, 0x0D, 0x09: position += 1
      default: return
      }
    }
  }

  private mutating func value(depth: Int) throws(JSONError) -> JSONValue {
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
    guard depth <= maxDepth else { throw failure(.tooDeep) }
    position += 1
    skipWhiteSpace()
    if next == UInt8(ascii: "]") {
      position += 1
      return []
    }
    var elements: [JSONValue] = []
    while true {
      elements.append(try value(depth: depth))
      skipWhiteSpace()
      switch next {
      case UInt8(ascii: ","): position += 1
      case UInt8(ascii: "]"):
        position += 1
        return elements
      default: throw failure()
      }
    }
  }

  private mutating func object(depth: Int) throws(JSONError) -> JSONObject {
    guard depth <= maxDepth else { throw failure(.tooDeep) }
    var object = JSONObject()
    position += 1
    skipWhiteSpace()
    if next == UInt8(ascii: "}") {
      position += 1
      return object
    }
    object.reserveCapacity(memberCounts[depth & 15])
    while true {
      skipWhiteSpace()
      guard next == UInt8(ascii: "\"") else { throw failure() }
      let start = position
      let key = try string()
      skipWhiteSpace()
      guard next == UInt8(ascii: ":") else { throw failure() }
      position += 1
      guard !object.contains(key: key) else { throw JSONError(.duplicateKey(key), at: start) }
      object.append(newKey: key, try value(depth: depth))
      skipWhiteSpace()
      switch next {
      case UInt8(ascii: ","): position += 1
      case UInt8(ascii: "}"):
        position += 1
        memberCounts[depth & 15] = Swift.min(object.count, 32)
        return object
      default: throw failure()
      }
    }
  }
}
