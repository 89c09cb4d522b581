extension SyncFragment {
  /// Reads a fragment from its JSON text.
  ///
  /// The result is that of ``init(json:)`` with the parsed text, in about a third of the time, because no JSON
  /// value is made for the fragment itself.
  ///
  /// - Parameters:
  ///   - bytes: The UTF-8 text, with nothing but white space around the fragment.
  ///   - limits: The maximum length and depth of the text.
  /// - Throws: ``FragmentTextError`` if the text is not JSON, or is no fragment.
  package init(
    parsing bytes: some Collection<UInt8>, limits: JSONLimits = .default
  ) throws(FragmentTextError) {
    let read = JSONParser.parse(bytes, limits: limits) { parser throws(JSONError) in
      try parser.fragment(depth: 0)
    }
    switch read {
    case .failure(let error): throw .notJSON(error)
    case .success(.failure(let error)): throw .notFragment(error)
    case .success(.success(let fragment)): self = fragment
    }
  }

  /// Reads a JSON array of fragments. All elements must be valid.
  ///
  /// ```swift
  /// let fragments = try SyncFragment.array(parsing: bytes)
  /// scope.apply(fragments)
  /// ```
  ///
  /// - Parameters:
  ///   - bytes: The UTF-8 text, with nothing but white space around the array.
  ///   - limits: The maximum length and depth of the text.
  /// - Throws: ``FragmentTextError`` if the text is not JSON, is not an array, or has an element that is no
  ///   fragment. The text is always read to its end: an error in the JSON takes precedence.
  package static func array(
    parsing bytes: some Collection<UInt8>, limits: JSONLimits = .default
  ) throws(FragmentTextError) -> [SyncFragment] {
    let read = JSONParser.parse(bytes, limits: limits) {
      parser throws(JSONError) -> JSONParser.Fragments? in
      parser.skipWhiteSpace()
      if parser.next == UInt8(ascii: "[") { return try parser.fragments(depth: 1) }
      _ = try parser.value(depth: 0)
      return nil
    }
    switch read {
    case .failure(let error): throw .notJSON(error)
    case .success(nil): throw .notAnArray
    case .success(.failure(let bad)?): throw .badElement(position: bad.position, error: bad.error)
    case .success(.success(let fragments)?): return fragments
    }
  }
}

/// The reason why a text is no fragment, or no array of fragments.
package enum FragmentTextError: Error, Sendable, Hashable {
  /// The text is not JSON.
  case notJSON(JSONError)
  /// The text is JSON, but not an array.
  case notAnArray
  /// The text is JSON, but not a fragment.
  case notFragment(FragmentError)
  /// An element of the array is not a fragment; `position` is its index.
  case badElement(position: Int, error: FragmentError)
}

extension FragmentTextError: CustomStringConvertible {
  /// A sentence fragment that describes the problem.
  package var description: String {
    switch self {
    case .notJSON(let error): "not JSON: \(error)"
    case .notAnArray: "not an array"
    case .notFragment(let error): "no fragment: \(error)"
    case .badElement(let position, let error): "element \(position): \(error)"
    }
  }
}
