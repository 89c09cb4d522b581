/// What is wrong with a fragment, or with the reply to one, that came from a peer or a file.
public enum FragmentError: Error, Sendable, Hashable {
  /// It is not a JSON object.
  case notAnObject
  /// A field that must be there is absent.
  case missing(field: String)
  /// A field has a value that it cannot have; `problem` says what would be right.
  case invalid(field: String, problem: String)
}

extension FragmentError: CustomStringConvertible {
  /// The field and the problem in words.
  public var description: String {
    switch self {
    case .notAnObject: "not an object"
    case .missing(let field): "\(field) is missing"
    case .invalid(let field, let problem): "\(field) \(problem)"
    }
  }
}
