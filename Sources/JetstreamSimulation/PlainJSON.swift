/// A JSON value in plain dictionaries and arrays, for checks that must not share code with the engines.
enum PlainJSON: Hashable {
  case null
  case bool(Bool)
  /// The number's text.
  case number(String)
  case string(String)
  case array([PlainJSON])
  case object([String: PlainJSON])

  /// Reads a text; nil if it is not JSON, or if an object in it has a key twice.
  init?(_ bytes: some Sequence<UInt8>) {
    var reader = PlainJSONReader(Array(bytes))
    guard let value = reader.read() else { return nil }
    self = value
  }

  subscript(key: String) -> PlainJSON? {
    if case .object(let members) = self { members[key] } else { nil }
  }

  var text: String? { if case .string(let text) = self { text } else { nil } }

  var whole: Int? { if case .number(let text) = self { Int(text) } else { nil } }

  var elements: [PlainJSON] { if case .array(let elements) = self { elements } else { [] } }

  var members: [String: PlainJSON] {
    if case .object(let members) = self { members } else { [:] }
  }

  /// Returns the result of a merge rule for a property that two clients have changed, computed in the plainest
  /// way; nil if the rule is not known here.
  static func merged(
    _ rule: String, base: PlainJSON, theirs: PlainJSON, mine: PlainJSON
  ) -> PlainJSON? {
    switch (rule, theirs, mine) {
    case ("max", .number(let a), .number(let b)): Double(a)! > Double(b)! ? theirs : mine
    case ("min", .number(let a), .number(let b)): Double(a)! < Double(b)! ? theirs : mine
    case ("sum", .number(let a), .number(let b)):
      base.whole.flatMap { base in
        Int(a).flatMap { a in Int(b).map { .number(String(a + $0 - base)) } }
      }
    case ("union", .array(let theirs), .array(let mine)):
      .array(
        mine.reduce(theirs.filter { mine.contains($0) || !base.elements.contains($0) }) {
          $0.contains($1) || base.elements.contains($1) ? $0 : $0 + [$1]
        })
    case ("union", .object(let theirs), .object(let mine)):
      .object(
        Dictionary(
          uniqueKeysWithValues: Set(theirs.keys).union(mine.keys).compactMap { key in
            let isMine = mine[key] != base[key]
            if mine[key] == nil, isMine, theirs[key] != base[key] { return (key, theirs[key]!) }
            return (isMine ? mine[key] : theirs[key]).map { (key, $0) }
          }))
    default: nil
    }
  }

  /// The strings among the elements of an array.
  var texts: [String] { elements.compactMap(\.text) }
}

extension PlainJSON: CustomStringConvertible {
  /// A short text for reports, in which UUIDs are cut to their first eight digits.
  var description: String {
    switch self {
    case .null: "null"
    case .bool(let flag): "\(flag)"
    case .number(let text): text
    case .string(let text): text.count == 36 ? String(text.prefix(8)) : "\"\(text)\""
    case .array(let elements): "[" + elements.map(\.description).joined(separator: " ") + "]"
    case .object(let members):
      "{"
        + members.sorted { $0.key < $1.key }.map { "\($0.key):\($0.value)" }
        .joined(separator: " ") + "}"
    }
  }
}

/// Returns a Boolean value that indicates whether one of `words`, which all begin with a quotation mark and an
/// S, occurs in `bytes`. It is cheaper than reading the frame.
func occurs(anyOf words: [[UInt8]], in bytes: [UInt8]) -> Bool {
  var at = 1
  while at < bytes.count {
    // An S is rarer than a quotation mark.
    if bytes[at] == UInt8(ascii: "S"), bytes[at - 1] == UInt8(ascii: "\""),
      words.contains(where: { bytes[(at - 1)...].starts(with: $0) })
    {
      return true
    }
    at += 1
  }
  return false
}
