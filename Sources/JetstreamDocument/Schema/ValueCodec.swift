/// The rules by which the type of a plain property reads JSON: which it accepts, how it writes it, and when two are the
/// same value.
///
/// The types themselves are those of `PropertyValue`, which the document does not know.
package protocol ValueCodec: Sendable {
  /// Returns the JSON as the type writes it; nil if it is not a value of the type.
  func normalized(_ json: JSONValue) -> JSONValue?
  /// Returns true if the JSON is a value of the type.
  func accepts(_ json: JSONValue) -> Bool
  /// Describes why the type does not accept the JSON, as a sentence; nil if it gives no reason.
  func problem(with json: JSONValue) -> String?
  /// Returns true if two JSON values are the same value of the type, even if they are written differently.
  func areSame(_ a: JSONValue, _ b: JSONValue) -> Bool
}
