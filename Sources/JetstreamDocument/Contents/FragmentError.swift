/// An error in a fragment, or in the reply to one, that was read from a peer or a file.
public enum FragmentError: Error, Sendable, Hashable {
  /// The value is not a JSON object.
  case notAnObject
  /// A required field is absent.
  case missing(field: String)
  /// A field has an invalid value; `problem` says what would be valid.
  case invalid(field: String, problem: String)
}

extension FragmentError: CustomStringConvertible {
  /// A sentence fragment that names the field and the problem.
  public var description: String {
    switch self {
    case .notAnObject: "not an object"
    case .missing(let field): "\(field) is missing"
    case .invalid(let field, let problem): "\(field) \(problem)"
    }
  }
}
