import Foundation

/// Connections to a port of this machine that never complete a handshake: every other one sends half of it, the others
/// nothing.
final class HalfOpenCrowd {
  private static let half = Array("GET / HTTP/1.1\r\nHost: a\r\nUpgr".utf8)
  private let port: UInt16
  private var connections: [Int32] = []

  init(_ port: UInt16) { self.port = port }

  deinit { for descriptor in connections { close(descriptor) } }

  /// Connects so many more.
  func grow(by count: Int) throws {
    for _ in 0..<count {
      let descriptor = try connection()
      connections.append(descriptor)
      if connections.count % 2 == 0 { _ = write(descriptor, Self.half, Self.half.count) }
    }
  }

  private func connection() throws -> Int32 {
    #if canImport(Darwin)
    let descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #else
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #endif
    guard descriptor >= 0 else { throw RoleProblem(text: "socket failed with errno \(errno)") }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else {
      let code = errno
      close(descriptor)
      throw RoleProblem(text: "connect failed with errno \(code)")
    }
    return descriptor
  }

  /// Closes the connections that the server has ended, and connects as many anew.
  func renew() throws {
    var polled = connections.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    poll(&polled, nfds_t(polled.count), 100)
    let ended = polled.filter { $0.revents != 0 }
    for end in ended { close(end.fd) }
    connections = polled.filter { $0.revents == 0 }.map(\.fd)
    try grow(by: ended.count)
  }
}
