/// A JSON value that keeps the width of every number.
///
/// Three cases hold whole numbers and fractions read from text, because JSON does not distinguish them and Swift
/// does: ``integer(_:)`` for every whole number that fits 64 signed bits, ``unsigned(_:)`` only above that,
/// ``double(_:)`` for all others. ``float(_:)`` is for writing only: it gives a `Float` its own shortest text
/// (`0.1`, not `0.10000000149011612`).
///
/// Two values are equal if they have the same case and content; the order of an object's keys does not matter.
/// `.integer(1)` and `.double(1)` are therefore different although both are written `1`: compare them as canonical JSON
/// if only the written form counts. Strings are compared as Swift compares them, so that canonically equivalent
/// Unicode text is equal.
///
/// An absent key and a key whose value is ``null`` are different things everywhere in Jetstream.
public enum JSONValue: Sendable, Hashable {
  /// The literal `null`.
  case null
  /// `true` or `false`.
  case bool(Bool)
  /// A whole number that fits 64 signed bits.
  case integer(Int64)
  /// A whole number above `Int64.max`. Use ``integer(_:)`` for all others.
  case unsigned(UInt64)
  /// A finite number. Infinities and NaN have no JSON text and are written as `null`.
  case double(Double)
  /// A finite number written with the shortest text of a `Float`. The parser never makes one.
  case float(Float)
  /// Text.
  case string(String)
  /// Values in order.
  case array([JSONValue])
  /// Values by key.
  case object(JSONObject)
}

extension JSONValue {
  /// Reads one JSON text, strictly after RFC 8259, in time linear in its length.
  ///
  /// Besides what the grammar forbids, these are refused: a key that occurs twice in one object
  /// (canonically equivalent keys count as one), a surrogate escape without its partner, bytes that
  /// are not UTF-8 (also a byte order mark), and a number too large for a `Double`. A number too
  /// small for a `Double` is read as zero.
  ///
  /// A text of more than 64 MiB, or nested more than 64 levels deep, is refused.
  ///
  /// - Parameter bytes: The UTF-8 text, such as `text.utf8`, with nothing but white space around the value.
  /// - Throws: ``JSONError`` with the reason and the byte at which reading stopped.
  public init(parsing bytes: some Collection<UInt8>) throws(JSONError) {
    try self.init(parsing: bytes, limits: .default)
  }

  /// Reads one JSON text that is already a string.
  ///
  /// - Throws: ``JSONError``, its offset counted in UTF-8 bytes.
  package init(parsing text: String) throws(JSONError) {
    try self.init(parsing: text, limits: .default)
  }

  /// Reads one JSON text within limits of length and depth.
  package init(
    parsing bytes: some Collection<UInt8>, limits: JSONLimits
  ) throws(JSONError) {
    self = try JSONParser.parse(bytes, limits: limits) { parser throws(JSONError) in
      try parser.value(depth: 0)
    }.get()
  }

  /// Reads one JSON text that is already a string, within limits of length and depth.
  package init(parsing text: String, limits: JSONLimits) throws(JSONError) {
    var text = text
    self = try text.withUTF8 { JSONParser.parse($0, limits: limits) }.get()
  }

  /// Returns true if arrays and objects nest more than `levels` deep. Costs O(n), and nothing for other values.
  package func nests(deeperThan levels: Int) -> Bool {
    switch self {
    case .array(let elements):
      levels == 0 || elements.contains { $0.nests(deeperThan: levels - 1) }
    case .object(let object):
      levels == 0 || object.members.contains { $0.value.nests(deeperThan: levels - 1) }
    default: false
    }
  }

  /// Reads one JSON text from a span of bytes.
  ///
  /// - Throws: ``JSONError`` with the reason and the byte at which reading stopped.
  package init(parsing bytes: Span<UInt8>, limits: JSONLimits = .default) throws(JSONError) {
    self = try bytes.withUnsafeBufferPointer { JSONParser.parse($0, limits: limits) }.get()
  }

  /// The compact text: no white space, keys in stored order, otherwise as `canonicalText`.
  package var text: String {
    var bytes: [UInt8] = []
    write(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The canonical text, which is the same for values with the same meaning; see <doc:CanonicalJSON>.
  package var canonicalText: String {
    var bytes: [UInt8] = []
    writeCanonical(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Appends `text` as UTF-8 to `bytes`.
  package func write(to bytes: inout [UInt8]) {
    bytes.append(written: { JSONWriter.write(self, sorted: false, to: &$0) })
  }

  /// Appends `canonicalText` as UTF-8 to `bytes`. Sorting costs O(n log n) in the keys of one object, and nothing
  /// if they are in order already.
  package func writeCanonical(to bytes: inout [UInt8]) {
    bytes.append(written: { JSONWriter.write(self, sorted: true, to: &$0) })
  }
}

extension JSONValue: ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByFloatLiteral, ExpressibleByStringLiteral, ExpressibleByArrayLiteral,
  ExpressibleByDictionaryLiteral
{
  /// Makes a ``bool(_:)``.
  public init(booleanLiteral value: Bool) { self = .bool(value) }

  /// Makes an ``integer(_:)``.
  public init(integerLiteral value: Int64) { self = .integer(value) }

  /// Makes a ``double(_:)``.
  public init(floatLiteral value: Double) { self = .double(value) }

  /// Makes a ``string(_:)``.
  public init(stringLiteral value: String) { self = .string(value) }

  /// Makes an ``array(_:)``.
  public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }

  /// Makes an ``object(_:)``; of two equal keys, the later value takes the earlier place.
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(JSONObject(elements))
  }
}

extension JSONValue: CustomStringConvertible {
  /// The compact JSON text: no white space, keys in stored order.
  public var description: String { text }
}
