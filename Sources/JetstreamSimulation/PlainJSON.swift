import Foundation

/// JSON as Foundation reads it, for those that must not share code with the engines.
indirect enum PlainJSON: Hashable {
  case null
  case bool(Bool)
  /// The number's text.
  case number(String)
  case string(String)
  case array([PlainJSON])
  case object([String: PlainJSON])

  /// Reads a text; nil if Foundation cannot.
  init?(_ bytes: some Sequence<UInt8>) {
    guard
      let any = try? JSONSerialization.jsonObject(with: Data(bytes), options: [.fragmentsAllowed])
    else { return nil }
    self.init(any: any)
  }

  private init(any: Any) {
    switch any {
    case let text as String: self = .string(text)
    case let elements as [Any]: self = .array(elements.map(PlainJSON.init(any:)))
    case let members as [String: Any]: self = .object(members.mapValues(PlainJSON.init(any:)))
    case let number as NSNumber:
      let isBool =
        String(cString: number.objCType) == "c" || String(cString: number.objCType) == "B"
      self = isBool ? .bool(number.boolValue) : .number(Self.text(number))
    default: self = .null
    }
  }

  /// One text for each value, however it was written.
  private static func text(_ number: NSNumber) -> String {
    let value = number.doubleValue
    if value == value.rounded(), value.magnitude < 0x1p53 { return String(Int64(value)) }
    return number.stringValue
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

  /// What a rule makes of a property that two have changed, worked out in the plainest way. Nil if the rule
  /// is not known here.
  static func merged(
    _ rule: String, base: PlainJSON, theirs: PlainJSON, mine: PlainJSON
  ) -> PlainJSON? {
    switch (rule, theirs, mine) {
    case ("max", .number(let a), .number(let b)): Double(a)! > Double(b)! ? theirs : mine
    case ("min", .number(let a), .number(let b)): Double(a)! < Double(b)! ? theirs : mine
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

  /// The texts of an array.
  var texts: [String] { elements.compactMap(\.text) }
}

extension PlainJSON: CustomStringConvertible {
  /// Short text for reports: UUIDs are cut to their first digits.
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

/// Whether `word` occurs in `bytes`: a cheap look before a frame is read.
func occurs(_ word: String, in bytes: [UInt8]) -> Bool {
  Data(bytes).range(of: Data(word.utf8)) != nil
}
