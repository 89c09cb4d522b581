#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation

/// An IPv4 or IPv6 address with its port, as the bytes of the platform's own `sockaddr`.
struct SocketAddress: Sendable, Equatable {
  let family: Int32
  private let bytes: [UInt8]

  /// Starts connecting a non-blocking socket. Returns 0 or a negative `errno`.
  func connect(_ descriptor: Int32) -> Int32 {
    withSocketAddress {
      #if canImport(Glibc)
      Glibc.connect(descriptor, $0, $1)
      #elseif canImport(Musl)
      Musl.connect(descriptor, $0, $1)
      #else
      Darwin.connect(descriptor, $0, $1)
      #endif
    }
  }

  /// Binds a socket. Returns 0 or a negative `errno`.
  func bind(_ descriptor: Int32) -> Int32 {
    withSocketAddress {
      #if canImport(Glibc)
      Glibc.bind(descriptor, $0, $1)
      #elseif canImport(Musl)
      Musl.bind(descriptor, $0, $1)
      #else
      Darwin.bind(descriptor, $0, $1)
      #endif
    }
  }

  private func withSocketAddress(
    _ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) -> Int32 {
    bytes.withUnsafeBytes { raw in
      // The bytes were copied from a sockaddr of this length, and heap storage is aligned for it.
      let address = raw.baseAddress!.assumingMemoryBound(to: sockaddr.self)
      return call(address, socklen_t(raw.count)) == 0 ? 0 : -errno
    }
  }

  /// Returns the port to which a socket is bound, or 0 when it is not.
  static func port(of descriptor: Int32) -> UInt16 {
    var storage = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutableBytes(of: &storage) { raw -> UInt16 in
      // A sockaddr_storage is large enough and aligned for every kind of address.
      let address = raw.baseAddress!.assumingMemoryBound(to: sockaddr.self)
      guard getsockname(descriptor, address, &size) == 0 else { return 0 }
      // In sockaddr_in and sockaddr_in6 alike the port is at offset 2, in network order.
      return UInt16(bigEndian: raw.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
    }
  }

  /// Returns the numeric address of the peer of a connected socket; nil when there is none. An IPv4 address on an IPv6
  /// socket is written as IPv4.
  static func remoteAddress(of descriptor: Int32) -> String? {
    address(of: descriptor, getpeername)
  }

  /// Returns the numeric address of the socket's own end, in the same form.
  static func localAddress(of descriptor: Int32) -> String? {
    address(of: descriptor, getsockname)
  }

  private static func address(
    of descriptor: Int32,
    _ read: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
  ) -> String? {
    var storage = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    var name = [CChar](repeating: 0, count: Int(NI_MAXHOST))
    let isNamed = withUnsafeMutableBytes(of: &storage) { raw -> Bool in
      // A sockaddr_storage is large enough and aligned for every kind of address.
      let address = raw.baseAddress!.assumingMemoryBound(to: sockaddr.self)
      guard read(descriptor, address, &size) == 0 else { return false }
      return getnameinfo(
        address, size, &name, socklen_t(name.count), nil, 0, Int32(NI_NUMERICHOST)) == 0
    }
    guard isNamed else { return nil }
    let text = String(
      decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return text.hasPrefix("::ffff:") && text.contains(".") ? String(text.dropFirst(7)) : text
  }

  /// Returns every address of `host`, best first. Blocks for as long as the resolver takes, unless `numericOnly` is
  /// true: then only numeric addresses are understood.
  static func resolve(
    host: String, port: UInt16, numericOnly: Bool = false, passive: Bool = false
  ) throws(WebSocketError) -> [SocketAddress] {
    var hints = addrinfo()
    #if canImport(Darwin)
    hints.ai_socktype = SOCK_STREAM
    #else
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    #endif
    hints.ai_flags = AI_NUMERICSERV | (numericOnly ? AI_NUMERICHOST : 0)
    if passive { hints.ai_flags |= AI_PASSIVE }
    var list: UnsafeMutablePointer<addrinfo>?
    let result = getaddrinfo(host, String(port), &hints, &list)
    guard result == 0 else {
      let reason = String(cString: gai_strerror(result))
      throw .nameResolutionFailed(host: host, reason: reason)
    }
    defer { freeaddrinfo(list) }
    var addresses: [SocketAddress] = []
    var next = list
    while let entry = next?.pointee {
      next = entry.ai_next
      guard entry.ai_family == AF_INET || entry.ai_family == AF_INET6, let address = entry.ai_addr
      else { continue }
      // The resolver's list is valid until it is freed above, so its bytes can be copied here.
      let raw = UnsafeRawBufferPointer(start: address, count: Int(entry.ai_addrlen))
      addresses.append(SocketAddress(family: entry.ai_family, bytes: Array(raw)))
    }
    return addresses
  }

  /// Resolves `host` without blocking the caller's thread. `completion` runs at once for a numeric address, and on a
  /// new thread for a name.
  static func resolve(
    host: String, port: UInt16, passive: Bool = false,
    completion: @escaping @Sendable (Result<[SocketAddress], WebSocketError>) -> Void
  ) {
    if let literal = try? resolve(host: host, port: port, numericOnly: true, passive: passive) {
      completion(.success(literal))
      return
    }
    Thread.detachNewThread {
      do throws(WebSocketError) {
        completion(.success(try resolve(host: host, port: port, passive: passive)))
      } catch {
        completion(.failure(error))
      }
    }
  }
}
