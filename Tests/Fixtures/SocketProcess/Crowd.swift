import Foundation

/// Connections to a port that never complete a handshake: every other one sends half of it, the others nothing.
///
/// - `open COUNT`: connects so many; says `opened COUNT`
/// - `read`: reads each connection to its end and closes it; says `ended COUNT`. An answer with another status than 408
///   ends the process.
/// - `close`: closes all; says `closed`
final class Crowd {
  private static let half = Array("GET / HTTP/1.1\r\nHost: a\r\nUpgr".utf8)
  #if canImport(Darwin)
  private static let streamType = SOCK_STREAM
  #else
  private static let streamType = Int32(SOCK_STREAM.rawValue)
  #endif

  private let port: UInt16
  private var connections: [Int32] = []

  init(port: UInt16) { self.port = port }

  func answer(to command: String) -> String {
    let words = command.split(separator: " ")
    switch words.first {
    case "open":
      guard words.count == 2, let count = Int(words[1]) else { break }
      for _ in 0..<count { connections.append(connection(connections.count)) }
      return "opened \(count)"
    case "read": return read()
    case "close":
      for descriptor in connections { close(descriptor) }
      connections = []
      return "closed"
    default: break
    }
    SocketProcess.fail("the crowd does not know '\(command)'")
  }

  private func connection(_ number: Int) -> Int32 {
    let descriptor = socket(AF_INET, Self.streamType, 0)
    guard descriptor >= 0 else { SocketProcess.fail("socket failed with errno \(errno)") }
    #if os(Linux)
    // An address of the loopback for each thousand, so that the other tests do not run out of ports.
    let source = bind(descriptor, to: 0, at: 0x7f00_0002 + UInt32(number / 1000))
    guard source == 0 else { SocketProcess.fail("bind failed with errno \(errno)") }
    #endif
    let result = withAddress(0x7f00_0001, port) { connect(descriptor, $0, $1) }
    guard result == 0 else { SocketProcess.fail("connect failed with errno \(errno)") }
    if number % 2 == 0 { _ = write(descriptor, Self.half, Self.half.count) }
    return descriptor
  }

  private func bind(_ descriptor: Int32, to port: UInt16, at host: UInt32) -> Int32 {
    withAddress(host, port) { Foundation.bind(descriptor, $0, $1) }
  }

  private func withAddress(
    _ host: UInt32, _ port: UInt16, _ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) -> Int32 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = host.bigEndian
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        call($0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }

  private func read() -> String {
    let count = connections.count
    var buffer = [UInt8](repeating: 0, count: 1024)
    for descriptor in connections {
      var answer: [UInt8] = []
      while true {
        let count = Foundation.read(descriptor, &buffer, buffer.count)
        guard count > 0 else { break }
        answer += buffer[..<count]
      }
      close(descriptor)
      let text = String(decoding: answer, as: UTF8.self)
      guard text.isEmpty || text.hasPrefix("HTTP/1.1 408 ") else {
        SocketProcess.fail("a connection was answered with \(text)")
      }
    }
    connections = []
    return "ended \(count)"
  }
}
