import Foundation

/// The form in which a client writes dates in the changes that it sends. Clients read either form.
///
/// A client chooses the form by itself. The old Node server writes dates as seconds in a state, as other servers do,
/// but takes a number that it receives for milliseconds, and nothing that a server of version 1 says tells it from
/// others before a date has been sent. All servers read text, so this is what servers of version 1 are sent; later
/// versions get seconds.
package enum DateForm: Sendable, Hashable {
  /// Seconds since 1970, as a number.
  case seconds
  /// ISO 8601 text with milliseconds. Fractions of a millisecond are lost, also at the client that has sent the
  /// date.
  case iso8601

  /// Chooses the form that every server of a version of the protocol reads.
  init(version: Int) { self = version == 1 ? .iso8601 : .seconds }

  /// Returns the fragments with their dates in this form.
  func applied(to fragments: [SyncFragment], in scope: Scope) -> [SyncFragment] {
    self == .seconds ? fragments : fragments.map { applied(to: $0, in: scope) }
  }

  /// Returns the fragment with its dates in this form.
  func applied(to fragment: SyncFragment, in scope: Scope) -> SyncFragment {
    var result = fragment
    for (key, value) in dates(of: fragment, in: scope) {
      result.properties[key] = Self.text(value)
    }
    return result
  }

  /// Returns the dates of a fragment that lose precision in this form, as they are after sending.
  func rounded(_ fragment: SyncFragment, in scope: Scope) -> JSONObject {
    var result = JSONObject()
    for (key, value) in dates(of: fragment, in: scope) {
      let rounded = Self.seconds(Self.text(value))
      if rounded != Self.seconds(value) { result[key] = rounded }
    }
    return result
  }

  /// Returns the properties of a fragment that hold dates; none if this form keeps dates as they are.
  private func dates(of fragment: SyncFragment, in scope: Scope) -> [(String, JSONValue)] {
    guard self == .iso8601, let schema = scope.schema(of: fragment) else { return [] }
    return fragment.properties.compactMap { key, value in
      schema[wireName: key]?.type.holdsDates == true ? (key, value) : nil
    }
  }

  private static func text(_ value: JSONValue) -> JSONValue {
    switch value {
    case .array(let elements): return .array(elements.map(text))
    case .object(let object): return .object(JSONObject(object.map { ($0, text($1)) }))
    default:
      // Years beyond these four digits are read by none of the old peers.
      guard let date = Date._decode(value),
        (-62_135_596_800...253_402_300_799)
          .contains(date.timeIntervalSince1970)
      else { return value }
      // The formatter cuts off what is below a millisecond; half of one makes that rounding.
      let rounded = date.addingTimeInterval(0.0005)
      return .string(rounded.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)))
    }
  }

  /// Returns the same dates as numbers.
  private static func seconds(_ value: JSONValue) -> JSONValue {
    switch value {
    case .array(let elements): .array(elements.map(seconds))
    case .object(let object): .object(JSONObject(object.map { ($0, seconds($1)) }))
    default: Date._decode(value)?._jsonValue ?? value
    }
  }
}

extension _PropertyType {
  fileprivate var holdsDates: Bool {
    switch self {
    case .date: true
    case .optional(let wrapped), .array(let wrapped), .set(let wrapped), .dictionary(let wrapped):
      wrapped.holdsDates
    default: false
    }
  }
}
