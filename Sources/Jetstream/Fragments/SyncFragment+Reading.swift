extension SyncFragment {
  /// Reads a fragment from its JSON text.
  ///
  /// Gives what ``init(json:)`` makes of the parsed text, but without a value for the fragment
  /// itself, in about a third of the time.
  ///
  /// - Parameters:
  ///   - bytes: The UTF-8 text, with nothing but white space around the fragment.
  ///   - limits: How long and how deep the text may be.
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

  /// Reads a JSON array of fragments. All of them have to be right.
  ///
  /// ```swift
  /// let fragments = try SyncFragment.array(parsing: bytes)
  /// scope.apply(fragments)
  /// ```
  ///
  /// - Parameters:
  ///   - bytes: The UTF-8 text, with nothing but white space around the array.
  ///   - limits: How long and how deep the text may be.
  /// - Throws: ``FragmentTextError`` if the text is not JSON, is not an array, or has an element that
  ///   is no fragment. The text is read to its end in any case: an error in the JSON comes first.
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

/// Why a text holds no fragment, or no array of them.
package enum FragmentTextError: Error, Sendable, Hashable {
  /// It is not JSON.
  case notJSON(JSONError)
  /// It is JSON, but not an array.
  case notAnArray
  /// It is JSON, but not a fragment.
  case notFragment(FragmentError)
  /// An element of the array is not a fragment; `position` is the number of elements before it.
  case badElement(position: Int, error: FragmentError)
}

extension FragmentTextError: CustomStringConvertible {
  /// The problem in words.
  package var description: String {
    switch self {
    case .notJSON(let error): "not JSON: \(error)"
    case .notAnArray: "not an array"
    case .notFragment(let error): "no fragment: \(error)"
    case .badElement(let position, let error): "element \(position): \(error)"
    }
  }
}
