#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif
import Synchronization

/// The ports that tests of this process have.
private let given = Mutex<Set<UInt16>>([])

/// A free port below those that systems give to outgoing connections. A server that is to come back on its port needs
/// one: another suite's connection may have got the port of an ordinary choice while the server was gone. No other test gets
/// the same.
public func keptPort() -> UInt16 {
  while true {
    let port = UInt16.random(in: 20_000..<32_000)
    if given.withLock({ $0.insert(port).inserted }), isFree(port) { return port }
  }
}

/// Returns true if a server could listen on a port.
public func isFree(_ port: UInt16) -> Bool {
  // A process that is started meanwhile would inherit the socket, and keep the port for as long as it runs.
  ChildProcess.whileNoneStarts { canBind(port) }
}

private func canBind(_ port: UInt16) -> Bool {
  #if canImport(Glibc)
  let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  #else
  let socket = socket(AF_INET, SOCK_STREAM, 0)
  #endif
  defer { close(socket) }
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
  return withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      bind(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
    }
  }
}
