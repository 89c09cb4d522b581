extension Ping {
  /// What a scope comes to at one place of its order.
  package struct Check: Sendable, Hashable {
    /// The scope's number in the session.
    package var scopeIndex: Int
    /// The place.
    package var sequence: Int
    /// The sum of the hashes of all models.
    package var digest: UInt64
    /// Tells whether both sides mean the same by the classes of the models: otherwise nothing can be
    /// compared.
    package var schema: UInt64

    /// Makes a check.
    package init(scopeIndex: Int, sequence: Int, digest: UInt64, schema: UInt64) {
      (self.scopeIndex, self.sequence) = (scopeIndex, sequence)
      (self.digest, self.schema) = (digest, schema)
    }
  }

  /// What the parts of a scope come to, where the whole is not what the server has said.
  package struct Difference: Sendable, Hashable {
    /// How many parts a scope has.
    package static let partCount = 256

    /// The scope's number in the session.
    package var scopeIndex: Int
    /// The sums of the hashes of the models in each part.
    package let parts: [UInt64]

    /// Makes a difference; there have to be ``partCount`` parts.
    package init(scopeIndex: Int, parts: [UInt64]) {
      precondition(
        parts.count == Self.partCount, "A scope has \(Self.partCount) parts, not \(parts.count).")
      (self.scopeIndex, self.parts) = (scopeIndex, parts)
    }
  }
}

extension Ping.Check {
  /// Reads a check.
  ///
  /// - Throws: ``FragmentError`` naming the field that is not what it should be.
  package init(json: JSONValue) throws(FragmentError) {
    guard case .object(let object) = json else { throw .notAnObject }
    self.init(
      scopeIndex: try object.wholeNumber("scopeIndex"),
      sequence: try object.wholeNumber("sequence"), digest: try object.hexNumber("digest"),
      schema: try object.hexNumber("schema"))
  }

  /// The check as JSON.
  package var json: JSONValue {
    [
      "scopeIndex": .integer(Int64(scopeIndex)), "sequence": .integer(Int64(sequence)),
      "digest": .string(digest.hexText), "schema": .string(schema.hexText),
    ]
  }
}

extension Ping.Difference {
  /// Reads a difference.
  ///
  /// - Throws: ``FragmentError`` naming the field that is not what it should be.
  package init(json: JSONValue) throws(FragmentError) {
    guard case .object(let object) = json else { throw .notAnObject }
    let scopeIndex = try object.wholeNumber("scopeIndex")
    let error = FragmentError.invalid(
      field: "parts", problem: "should be \(16 * Self.partCount) hexadecimal digits")
    guard case .string(let text)? = object["parts"], text.utf8.count == 16 * Self.partCount else {
      throw error
    }
    let digits = Array(text.utf8)
    var parts: [UInt64] = []
    for start in stride(from: 0, to: digits.count, by: 16) {
      let part = UInt64(hexText: String(decoding: digits[start..<start + 16], as: UTF8.self))
      guard let part else { throw error }
      parts.append(part)
    }
    self.init(scopeIndex: scopeIndex, parts: parts)
  }

  /// The difference as JSON.
  package var json: JSONValue {
    [
      "scopeIndex": .integer(Int64(scopeIndex)),
      "parts": .string(parts.map(\.hexText).joined()),
    ]
  }
}

extension JSONObject {
  fileprivate func wholeNumber(_ field: String) throws(FragmentError) -> Int {
    guard let value = self[field] else { throw .missing(field: field) }
    guard let number = value.wholeNumber else {
      throw .invalid(field: field, problem: "should be a whole number from 0 up")
    }
    return number
  }

  fileprivate func hexNumber(_ field: String) throws(FragmentError) -> UInt64 {
    guard let value = self[field] else { throw .missing(field: field) }
    guard case .string(let text) = value, let number = UInt64(hexText: text) else {
      throw .invalid(field: field, problem: "should be 16 hexadecimal digits")
    }
    return number
  }
}
