extension Ping {
  /// A place in the stream of a scope, whose change sets have no index: the client names those that it has applied, and
  /// the server those that it has sent or is going to send.
  package struct Place: Sendable, Hashable {
    /// The number by which the session names the scope.
    package var scopeIndex: Int
    /// The sequence of the last change set before the place.
    package var sequence: Int

    /// Creates a place.
    package init(scopeIndex: Int, sequence: Int) {
      (self.scopeIndex, self.sequence) = (scopeIndex, sequence)
    }
  }

  /// The digest of a scope at one sequence, which the receiver compares with its own.
  package struct Check: Sendable, Hashable {
    /// The scope's index in the session.
    package var scopeIndex: Int
    /// The sequence at which the digest was computed.
    package var sequence: Int
    /// The sum of the hashes of all models.
    package var digest: UInt64
    /// The fingerprint of the models' classes. Digests can be compared only if both sides have the same fingerprint.
    package var schema: UInt64

    /// Creates a check.
    package init(scopeIndex: Int, sequence: Int, digest: UInt64, schema: UInt64) {
      (self.scopeIndex, self.sequence) = (scopeIndex, sequence)
      (self.digest, self.schema) = (digest, schema)
    }
  }

  /// The digests of the parts of a scope, for a scope whose whole digest differs from the server's.
  package struct Difference: Sendable, Hashable {
    /// The number of parts that a scope is divided into.
    package static let partCount = 256

    /// The scope's index in the session.
    package var scopeIndex: Int
    /// The sum of the models' hashes, for each part.
    package let parts: [UInt64]

    /// Creates a difference. Traps unless there are ``partCount`` parts.
    package init(scopeIndex: Int, parts: [UInt64]) {
      precondition(
        parts.count == Self.partCount, "A scope has \(Self.partCount) parts, not \(parts.count).")
      (self.scopeIndex, self.parts) = (scopeIndex, parts)
    }
  }
}

extension Ping.Place {
  /// Reads a place.
  ///
  /// - Throws: ``FragmentError`` naming the first field that is missing or invalid.
  package init(json: JSONValue) throws(FragmentError) {
    guard case .object(let object) = json else { throw .notAnObject }
    self.init(
      scopeIndex: try object.wholeNumber("scopeIndex"),
      sequence: try object.wholeNumber("sequence"))
  }

  /// The place as JSON.
  package var json: JSONValue {
    ["scopeIndex": .integer(Int64(scopeIndex)), "sequence": .integer(Int64(sequence))]
  }
}

extension Ping.Check {
  /// Reads a check.
  ///
  /// - Throws: ``FragmentError`` naming the first field that is missing or invalid.
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
  /// - Throws: ``FragmentError`` naming the first field that is missing or invalid.
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
