import Foundation
import JetstreamWebSocket

/// Decides from which pages a server may be used, and under which names.
///
/// A browser lets any page open a WebSocket to any address, one on the user's own machine too, and says with `Origin`
/// where the page is from. A page may also be loaded under a name that its owner then points at that machine (DNS
/// rebinding): its origin is the server's own, and only the name in `Host` tells. Of requests from the same machine, that
/// name has to be one that nobody else can have. Of others, the server cannot know under which names it is reached.
struct OriginPolicy: Sendable {
  /// Of pages that may open WebSockets besides the server's own; with `*`, all may.
  let origins: Set<String>
  /// Names for requests that come from the same machine, besides those that mean the machine itself.
  let hosts: Set<String>

  /// Why a request is refused; nil if it is not.
  func objection(to request: HTTPRequest, opensWebSocket: Bool) -> String? {
    let host = request.headers["Host"]
    let isLocal = request.isFromSameMachine || isLoopback(request.remoteAddress ?? "")
    if let host, isLocal, !isOwn(name(in: host)) {
      return
        "This server is not \(host). A reverse proxy on the same machine has to pass on a name that is in "
        + "Server.Configuration.allowedHosts."
    }
    guard opensWebSocket else { return nil }
    for origin in request.headers.values(for: "Origin") where !isAllowed(origin, host: host) {
      return
        "Pages of \(origin) may not use this server. It has to be in Server.Configuration.allowedOrigins."
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

  /// Whether a name is an address: nobody can point that elsewhere.
  private func isAddress(_ name: String) -> Bool {
    if name.contains(":") { return true }
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts.allSatisfy { UInt8($0) != nil }
  }

  /// The name in a `Host` field, without its port and without brackets.
  private func name(in host: String) -> String {
    let host = host.lowercased()
    if host.hasPrefix("["), let end = host.firstIndex(of: "]") {
      return String(host[host.index(after: host.startIndex)..<end])
    }
    return String(host.prefix { $0 != ":" })
  }

  /// Whether an address is one of the machine itself.
  private func isLoopback(_ address: String) -> Bool {
    if address == "::1" { return true }
    let parts = address.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
  }
}
