import Foundation

/// The `Retry-After` header, with which a server or proxy asks a client to wait.
enum RetryAfter {
  /// Returns the time to wait, at most 10^9 s; nil if the header is missing or invalid.
  ///
  /// - Parameter now: the current time, from which a date in the header is counted.
  static func duration(in headers: HTTPHeaders, now: Date) -> Duration? {
    guard let text = headers.values(for: "Retry-After").first else { return nil }
    let seconds = Int(text).map(Double.init) ?? date(text)?.timeIntervalSince(now)
    guard let seconds, seconds <= 1e9 else { return nil }
    return .seconds(max(0, seconds))
  }

  /// Reads a date in the format of HTTP.
  private static func date(_ text: String) -> Date? {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(identifier: "GMT")
    formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    return formatter.date(from: text)
  }
}
