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
  ChildProcess.whileNoneStarts {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return canBind(address, of: AF_INET)
  }
}

/// True if the system has the loopback address of IPv6.
public let hasVersionSix = ChildProcess.whileNoneStarts {
  var address = sockaddr_in6()
  address.sin6_family = sa_family_t(AF_INET6)
  address.sin6_addr = in6addr_loopback
  return canBind(address, of: AF_INET6)
}

private func canBind<Address>(_ address: Address, of family: Int32) -> Bool {
  #if canImport(Glibc)
  let socket = socket(family, Int32(SOCK_STREAM.rawValue), 0)
  #else
  let socket = socket(family, SOCK_STREAM, 0)
  #endif
  defer { close(socket) }
  return withUnsafeBytes(of: address) {
    bind(
      socket, $0.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count)) == 0
  }
}
