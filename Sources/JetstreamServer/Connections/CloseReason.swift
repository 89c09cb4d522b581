import Jetstream

/// Shortens close reasons to the 123 bytes that fit into a control frame. Cost: O(n), also for a text of a peer's.
enum CloseReason {
  private static let limit = 123

  static func text(_ error: WireError) -> String {
    var error = error
    error.message = beginning(of: error.message)
    while error.json.text.utf8.count > limit, !error.message.isEmpty {
      error.message.removeLast(min(8, error.message.count))
    }
    return error.json.text
  }

  static func plain(_ text: String) -> String {
    var text = beginning(of: text)
    while text.utf8.count > limit { text.removeLast() }
    return text
  }

  private static func beginning(of text: String) -> String {
    text.utf8.count > limit ? String(text.unicodeScalars.prefix(limit)) : text
  }
}
