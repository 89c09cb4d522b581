import Foundation
import JetstreamWebSocket

/// Refuses requests that a foreign web page has made a browser send.
///
/// A browser lets every page open a WebSocket to every address, including those of the user's own machine. It names the
/// page's origin in `Origin`. With DNS rebinding, the owner of a page points the page's own name at that machine: the
/// origin then equals the server's, and only `Host` shows the foreign name. A request from the same machine therefore
/// has to carry a name that only this machine can own. For other requests, the server does not know its own names.
struct OriginPolicy: Sendable {
  /// The origins that may open WebSockets in addition to the server's own; `*` allows all.
  let origins: Set<String>
  /// The names that requests from the same machine may carry in addition to those of the machine itself.
  let hosts: Set<String>

  /// Returns the reason for which a request is refused; nil if it is served.
  func objection(to request: HTTPRequest, opensWebSocket: Bool) -> String? {
    let host = request.headers["Host"]
    let isLocal = request.isFromSameMachine || isLoopback(request.remoteAddress ?? "")
    if let host, isLocal, !isOwn(name(in: host)) {
      return
        "This server is not \(host). A reverse proxy on the same machine has to pass on a name that is in "
        + "Server.Configuration.allowedHosts (jetstream serve: --allow-host)."
    }
    guard opensWebSocket else { return nil }
    for origin in request.headers.values(for: "Origin") where !isAllowed(origin, host: host) {
      return
        "Pages of \(origin) may not use this server. It has to be in "
        + "Server.Configuration.allowedOrigins (jetstream serve: --allow-origin)."
    }
    return nil
  }

  private func isAllowed(_ origin: String, host: String?) -> Bool {
    if origins.contains("*") { return true }
    let origin = origin.lowercased()
    if origins.contains(where: { $0.lowercased() == origin }) { return true }
    guard let host, let scheme = origin.range(of: "://") else { return false }
    return origin[scheme.upperBound...] == host.lowercased()
  }

  private func isOwn(_ name: String) -> Bool {
    name == "localhost" || name.hasSuffix(".localhost") || isAddress(name)
      || name == ProcessInfo.processInfo.hostName.lowercased()
      || hosts.contains { $0.lowercased() == name }
  }

  /// Returns whether a name is an IP address, which cannot be pointed at another machine.
  private func isAddress(_ name: String) -> Bool {
    if name.contains(":") { return true }
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts.allSatisfy { UInt8($0) != nil }
  }

  /// Returns the name in a `Host` field, without its port and without brackets.
  private func name(in host: String) -> String {
    let host = host.lowercased()
    if host.hasPrefix("["), let end = host.firstIndex(of: "]") {
      return String(host[host.index(after: host.startIndex)..<end])
    }
    return String(host.prefix { $0 != ":" })
  }

  /// Returns whether an address is in `127.0.0.0/8` or is `::1`.
  private func isLoopback(_ address: String) -> Bool {
    if address == "::1" { return true }
    let parts = address.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
  }
}
