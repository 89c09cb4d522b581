import Foundation
import JetstreamWebSocket

/// The parameters of a connection: headers and query items whose names begin with `x-jetstream-`.
enum ConnectionParams {
  /// The query wins over the headers. A query item's name is taken as it is after the prefix, in
  /// which case does not matter, as old servers do; a header's is in lower case.
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
