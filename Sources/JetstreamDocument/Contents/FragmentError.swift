/// An error in a fragment, or in the reply to one, that was read from a peer or a file. Its description is a sentence
/// fragment that names the field and the problem.
public struct FragmentError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The field and the problem.
  public let description: String

  private init(_ description: String) { self.description = description }

  /// The value is not a JSON object.
  package static let notAnObject = FragmentError("not an object")

  /// A required field is absent.
  package static func missing(field: String) -> FragmentError {
    FragmentError("\(field) is missing")
  }

  /// A field has an invalid value; `problem` says what would be valid.
  package static func invalid(field: String, problem: String) -> FragmentError {
    FragmentError("\(field) \(problem)")
  }
}
