import Foundation

/// The shared coders. They keep no state between calls.
private enum CodableCoders {
  static let encoder: JSONEncoder = {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    encoder.dateEncodingStrategy = .secondsSince1970
    encoder.dataEncodingStrategy = .base64
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
    return encoder
  }()

  static let decoder = makeDecoder()

  /// Reads `NaN` without quotes as well.
  static let lenientDecoder: JSONDecoder = {
    let decoder = makeDecoder()
    decoder.allowsJSON5 = true
    return decoder
  }()

  private static func makeDecoder() -> JSONDecoder {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .secondsSince1970
    decoder.dataDecodingStrategy = .base64
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(
      positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
    return decoder
  }
}

extension JSONValue {
  /// Makes the JSON of a value with sorted keys, as that of a property is made.
  package init(encoding value: some Encodable) throws {
    let bytes = try CodableCoders.encoder.encode(value)
    do {
      self = try JSONValue(parsing: bytes, limits: .value).sortedByKey
    } catch {
      // The encoder has no strategy for a `Decimal` that is no number: it writes NaN, which is no JSON.
      guard let quoted = NotANumber.quoted(bytes) else { throw error }
      self = try JSONValue(parsing: quoted, limits: .value).sortedByKey
    }
  }

  /// Returns the value of a type that this JSON describes.
  package func decoded<Value: Decodable>(as type: Value.Type) throws -> Value {
    var bytes: [UInt8] = []
    write(to: &bytes)
    do {
      return try CodableCoders.decoder.decode(type, from: Data(bytes))
    } catch {
      // The decoder reads no `Decimal` from a text.
      guard let bare = NotANumber.unquoted(bytes),
        let value = try? CodableCoders.lenientDecoder.decode(type, from: Data(bare))
      else { throw error }
      return value
    }
  }

  /// This value with the keys of every object in the order of their UTF-8 bytes.
  fileprivate var sortedByKey: JSONValue {
    switch self {
    case .array(let elements): return .array(elements.map(\.sortedByKey))
    case .object(let object): return .object(object.sortedByKey(\.sortedByKey))
    default: return self
    }
  }
}

/// The text `NaN` in JSON, for decimals that are no number: in quotes for Jetstream, bare for Foundation's coders.
private enum NotANumber {
  private static let word = Array("NaN".utf8)
  private static let quote = UInt8(ascii: "\"")

  /// Returns the text with each bare `NaN` in quotes; nil if there is none.
  static func quoted(_ bytes: Data) -> [UInt8]? {
    replacing(bytes) { token in token.elementsEqual(word) ? [quote] + word + [quote] : nil }
  }

  /// Returns the text with each string `NaN` without its quotes; nil if there is none.
  static func unquoted(_ bytes: [UInt8]) -> [UInt8]? {
    replacing(bytes) { token in token.elementsEqual([quote] + word + [quote]) ? word : nil }
  }

  /// Replaces strings, with their quotes, and words of letters outside of strings. Nil if nothing is replaced.
  private static func replacing(
    _ bytes: some Collection<UInt8>, _ replacement: (ArraySlice<UInt8>) -> [UInt8]?
  ) -> [UInt8]? {
    let bytes = Array(bytes)
    var result: [UInt8] = []
    var isChanged = false
    var at = 0
    while at < bytes.count {
      var end = at + 1
      if bytes[at] == quote {
        while end < bytes.count, bytes[end] != quote {
          end += bytes[end] == UInt8(ascii: "\\") ? 2 : 1
        }
        end = min(end + 1, bytes.count)
      } else if isLetter(bytes[at]) {
        while end < bytes.count, isLetter(bytes[end]) { end += 1 }
      }
      let replaced = replacement(bytes[at..<end])
      isChanged = isChanged || replaced != nil
      result += replaced ?? Array(bytes[at..<end])
      at = end
    }
    return isChanged ? result : nil
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
  }
}
