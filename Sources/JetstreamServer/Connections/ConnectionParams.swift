import Foundation
import JetstreamWebSocket

/// The parameters of a connection: headers and query items whose names begin with `x-jetstream-`.
enum ConnectionParams {
  /// Returns the parameters of a request. A query item wins over a header of the same name. The prefix is compared
  /// without regard to case; the rest of a query item's name is taken unchanged, as older servers do, and the rest of a
  /// header's name in lower case.
  static func read(from request: HTTPRequest) -> [String: String] {
    let prefix = "x-jetstream-"
    var result: [String: String] = [:]
    for (name, value) in request.headers.fields where name.lowercased().hasPrefix(prefix) {
      result[String(name.lowercased().dropFirst(prefix.count))] = value
    }
    for item in request.query?.split(separator: "&") ?? [] {
      let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = String(parts[0]).removingPercentEncoding,
        name.lowercased().hasPrefix(prefix)
      else { continue }
      let value = parts.count > 1 ? String(parts[1]) : ""
      result[String(name.dropFirst(prefix.count))] = value.removingPercentEncoding ?? value
    }
    return result
  }
}
