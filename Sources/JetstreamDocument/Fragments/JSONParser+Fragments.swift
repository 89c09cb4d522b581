import Foundation

/// Reading fragments without making JSON values first.
extension JSONParser {
  /// The fragments of an array, or the place and the error of the first element that is none.
  package typealias Fragments = Result<[SyncFragment], BadElement>

  /// An element that is JSON, but not what it should be.
  package struct BadElement: Error {
    package var position: Int
    package var error: FragmentError
  }

  /// Reads an array of fragments whose opening bracket is the next byte. After an element that is no fragment, the
  /// others are only checked for being JSON.
  package mutating func fragments(depth: Int) throws(JSONError) -> Fragments {
    var fragments: [SyncFragment] = []
    var bad: BadElement?
    var place = 0
    try eachElement(depth: depth) { parser throws(JSONError) in
      switch try parser.fragment(depth: depth) {
      case .success(let fragment):
        // Mostly there is a single one: the array is made for that.
        if fragments.isEmpty { fragments = [fragment] } else { fragments.append(fragment) }
      case .failure(let error): if bad == nil { bad = BadElement(position: place, error: error) }
      }
      place += 1
    }
    return bad.map { .failure($0) } ?? .success(fragments)
  }

  /// Reads any value as a fragment, with the same result as ``SyncFragment/init(json:)``.
  @inline(__always)
  mutating func fragment(depth: Int) throws(JSONError) -> Result<SyncFragment, FragmentError> {
    skipWhiteSpace()
    let start = position
    if let fragment = try plainFragment(depth: depth + 1) { return .success(fragment) }
    position = start
    isCanonical = false
    return try fragmentOfValue(depth: depth)
  }

  @inline(never)
  private mutating func fragmentOfValue(
    depth: Int
  ) throws(JSONError) -> Result<SyncFragment, FragmentError> {
    let json = try value(depth: depth)
    do throws(FragmentError) {
      return .success(try SyncFragment(json: json))
    } catch {
      return .failure(error)
    }
  }

  /// Reads a fragment with the four required fields and perhaps operations, bases or known, in any order and with
  /// no other fields, which is the form that peers write. Nil for all others, with the position somewhere in them.
  /// Only values in the order in which they are written count as canonical: operations may be written in other forms.
  ///
  /// It throws the error that reading the value would throw: everything before that position is valid.
  @inline(__always)
  private mutating func plainFragment(depth: Int) throws(JSONError) -> SyncFragment? {
    guard depth <= maxDepth, next == UInt8(ascii: "{") else { return nil }
    var kind: SyncFragment.Kind?
    var uuid: UUID?
    var className: String?
    var properties: JSONObject?
    var operations: PropertyOperations?
    var bases: JSONObject?
    var known: JSONObject?
    // Peers write the fields in one order, and most fragments are changes.
    if take(#"{"type":"change","uuid":"#) {
      guard let value = takeUUID() else { return nil }
      (kind, uuid) = (.change, value)
      skipWhiteSpace()
      guard next == UInt8(ascii: ",") else { return nil }
    }
    repeat {
      position += 1
      skipWhiteSpace()
      if kind == nil, take(#""type""#) {
        guard takeColon() else { return nil }
        if take(#""change""#) {
          kind = .change
        } else if take(#""add""#) {
          kind = .add
        } else {
          return nil
        }
      } else if uuid == nil, take(#""uuid""#) {
        if kind == nil || className != nil { isCanonical = false }
        guard takeColon(), let value = takeUUID() else { return nil }
        uuid = value
      } else if className == nil, take(#""clsName""#) {
        if uuid == nil || properties != nil { isCanonical = false }
        guard takeColon(), next == UInt8(ascii: "\"") else { return nil }
        className = try key().string
      } else if properties == nil, take(#""properties""#) {
        if className == nil { isCanonical = false }
        guard takeColon(), next == UInt8(ascii: "{") else { return nil }
        properties = try object(depth: depth + 1)
      } else if operations == nil, take(#""operations""#) {
        isCanonical = false
        guard takeColon(), next == UInt8(ascii: "{") else { return nil }
        let read = try object(depth: depth + 1)
        guard let known = try? PropertyOperations(json: .object(read)) else { return nil }
        operations = known
      } else if bases == nil, known == nil, take(#""bases""#) {
        isCanonical = false
        guard takeColon(), next == UInt8(ascii: "{") else { return nil }
        bases = try object(depth: depth + 1)
      } else if bases == nil, known == nil, take(#""known""#) {
        isCanonical = false
        guard takeColon(), next == UInt8(ascii: "{") else { return nil }
        known = try object(depth: depth + 1)
      } else {
        return nil
      }
      skipWhiteSpace()
    } while next == UInt8(ascii: ",")
    guard next == UInt8(ascii: "}"), let kind, let uuid, let className, let properties else {
      return nil
    }
    if kind == .add ? operations != nil || bases != nil : known != nil { return nil }
    position += 1
    return SyncFragment(
      kind, uuid: uuid, className: className, properties: properties,
      operations: operations ?? [:], bases: bases ?? known ?? [:])
  }

  /// Goes past a fixed text if it comes next.
  @inline(__always)
  package mutating func take(_ text: StaticString) -> Bool {
    let length = text.utf8CodeUnitCount
    guard bytes.count - position >= length, let start = bytes.baseAddress,
      memcmp(start + position, text.utf8Start, length) == 0
    else { return false }
    position += length
    return true
  }

  /// Goes past a whole number from 0 up, of at most 15 digits, if one comes next.
  package mutating func takeNumber() -> Int? {
    let start = position
    var number = 0
    while case let digit = next &- UInt8(ascii: "0"), digit < 10 {
      number = number &* 10 &+ Int(digit)
      position += 1
    }
    let length = position - start
    guard length > 0, length <= 15, length == 1 || bytes[start] != UInt8(ascii: "0") else {
      return nil
    }
    return number
  }

  /// Goes past a colon and white space around it.
  @inline(__always)
  private mutating func takeColon() -> Bool {
    skipWhiteSpace()
    guard next == UInt8(ascii: ":") else { return false }
    position += 1
    skipWhiteSpace()
    return true
  }

  /// Goes past a UUID in its quotes if one comes next.
  @inline(__always)
  package mutating func takeUUID() -> UUID? {
    guard bytes.count - position >= 38, bytes[position] == UInt8(ascii: "\""),
      bytes[position + 37] == UInt8(ascii: "\"")
    else { return nil }
    let text = UnsafeRawBufferPointer(
      UnsafeBufferPointer(rebasing: bytes[position + 1..<position + 37]))
    guard let uuid = UUID(wireBytes: text) else { return nil }
    if UUID.hasCapitals(text) { isCanonical = false }
    position += 38
    return uuid
  }
}
