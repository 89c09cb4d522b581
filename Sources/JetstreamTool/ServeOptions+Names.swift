/// The origins and hosts on the command line. A value that no request can carry is refused: it would let in less than its
/// user believes, without a word.
extension ServeOptions {
  /// Returns an origin as browsers send it.
  static func origin(_ text: String) throws(Problem) -> String {
    if ["*", "null"].contains(text) { return text }
    let form =
      /([A-Za-z][A-Za-z0-9+.\-]*):\/\/(?:[A-Za-z0-9._\-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]+))?/
    guard let match = text.wholeMatch(of: form) else {
      throw Problem(
        text: "--allow-origin needs *, null or scheme://host:port without a path, not \"\(text)\".")
    }
    guard let port = match.2 else { return text }
    guard let number = UInt16(port), number > 0 else {
      throw Problem(text: "--allow-origin needs a port from 1 to 65535, not \"\(text)\".")
    }
    guard usualPorts[match.1.lowercased()] != number else {
      throw Problem(
        text: "browsers leave out the port \(number) of --allow-origin \(text): leave it out, too.")
    }
    return text
  }

  /// The ports that browsers do not name.
  private static let usualPorts: [String: UInt16] = ["http": 80, "https": 443]

  /// Returns a host's name as requests carry it in front of the port.
  static func host(_ text: String) throws(Problem) -> String {
    guard text.wholeMatch(of: /[A-Za-z0-9._\-]+|[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*/) != nil
    else {
      throw Problem(
        text: "--allow-host needs a name without scheme, port and path, not \"\(text)\".")
    }
    return text
  }
}
