import Foundation

/// The header with which a server, or a proxy in front of it, says when to come back.
enum RetryAfter {
  /// How long to wait, at most 10^9 s; nil if the header is missing or makes no sense.
  ///
  /// - Parameter now: the time, in which a date is a time to wait.
  static func duration(in headers: HTTPHeaders, now: Date) -> Duration? {
    guard let text = headers.values(for: "Retry-After").first else { return nil }
    let seconds = Int(text).map(Double.init) ?? date(text)?.timeIntervalSince(now)
    guard let seconds, seconds <= 1e9 else { return nil }
    return .seconds(max(0, seconds))
  }

  /// Reads the form of dates that HTTP asks for.
  private static func date(_ text: String) -> Date? {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(identifier: "GMT")
    formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    return formatter.date(from: text)
  }
}
