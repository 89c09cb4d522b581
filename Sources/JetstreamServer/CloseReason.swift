import Jetstream

/// Shortens close reasons to the 123 bytes that fit into a control frame.
enum CloseReason {
  static func text(_ error: WireError) -> String {
    var error = error
    while error.json.text.utf8.count > 123, !error.message.isEmpty {
      error.message.removeLast(min(8, error.message.count))
    }
    return error.json.text
  }

  static func plain(_ text: String) -> String {
    var text = text
    while text.utf8.count > 123 { text.removeLast() }
    return text
  }
}
