import Foundation

/// How a client writes dates in the changes that it sends. Dates are read in either form.
public enum DateForm: Sendable, Hashable {
  /// Seconds since 1970, as a number: the normal form.
  case seconds
  /// ISO 8601 text with milliseconds. The old Node server takes numbers for milliseconds, so this is
  /// the form in which it understands a date.
  case iso8601

  /// The fragment with its dates in this form.
  func applied(to fragment: SyncFragment, in scope: Scope) -> SyncFragment {
    guard self == .iso8601, let schema = scope.schema(of: fragment) else {
      return fragment
    }
    var result = fragment
    for (key, value) in fragment.properties where schema[wireName: key]?.type.holdsDates == true {
      result.properties[key] = Self.text(value)
    }
    return result
  }

  private static func text(_ value: JSONValue) -> JSONValue {
    switch value {
    case .array(let elements): return .array(elements.map(text))
    case .object(let object): return .object(JSONObject(object.map { ($0, text($1)) }))
    default:
      guard let date = Date.decode(value) else { return value }
      // The formatter cuts off what is below a millisecond; half of one makes that rounding.
      let rounded = date.addingTimeInterval(0.0005)
      return .string(rounded.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)))
    }
  }
}

extension PropertyType {
  fileprivate var holdsDates: Bool {
    switch self {
    case .date: true
    case .optional(let wrapped), .array(let wrapped), .dictionary(let wrapped): wrapped.holdsDates
    default: false
    }
  }
}
