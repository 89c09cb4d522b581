#if os(Linux)
import Foundation

// All that the load does with pointers is in this file. The C functions get the start and the length of memory that is
// borrowed for the call, from a span, an array or a literal, and keep neither. Each place in it is checked before.

extension Span<UInt8> {
  /// Returns true if the key is at a place.
  func has(_ key: StaticString, at place: Int) -> Bool {
    guard place >= 0, key.utf8CodeUnitCount <= count - place else { return false }
    return withUnsafeBytes {
      memcmp($0.baseAddress! + place, key.utf8Start, key.utf8CodeUnitCount) == 0
    }
  }

  /// Returns the place behind the first occurrence of a key from `start` on.
  ///
  /// - Parameter anchor: the place in the key of the byte that is looked for first; the rarer it is, the faster.
  func end(ofFirst key: StaticString, from start: Int = 0, anchor: Int = 0) -> Int? {
    precondition(anchor < key.utf8CodeUnitCount, "The anchor is not in the key.")
    var place = start + anchor
    while place < count {
      let found = withUnsafeBytes { bytes in
        memchr(bytes.baseAddress! + place, Int32(key.utf8Start[anchor]), bytes.count - place)
          .map { UnsafeRawPointer($0) - bytes.baseAddress! }
      }
      guard let found else { return nil }
      if has(key, at: found - anchor) { return found - anchor + key.utf8CodeUnitCount }
      place = found + 1
    }
    return nil
  }

  /// Returns the place behind the last occurrence of a key, in time that grows with the distance from the end.
  func end(ofLast key: StaticString) -> Int? {
    var place = count - key.utf8CodeUnitCount
    while place >= 0 {
      if has(key, at: place) { return place + key.utf8CodeUnitCount }
      place -= 1
    }
    return nil
  }

  /// Returns the number whose digits begin at a place.
  func number(at place: Int) -> Int {
    var number = 0
    var place = place
    while place < count, case let digit = self[place] &- 0x30, digit < 10 {
      number = number &* 10 &+ Int(digit)
      place += 1
    }
    return number
  }

  /// Returns the number behind the last occurrence of a key.
  func number(behindLast key: StaticString) -> Int? {
    guard let end = end(ofLast: key) else { return nil }
    return number(at: end)
  }

  /// Returns the beginning as text, for the description of an error.
  var excerpt: String {
    withUnsafeBytes { String(decoding: $0.prefix(200), as: UTF8.self) }
  }
}

extension [UInt8] {
  mutating func append(_ text: StaticString) {
    append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  /// Appends a number with at least so many digits.
  mutating func append(decimal number: Int, digits: Int = 1) {
    let start = count
    var rest = number
    repeat {
      append(UInt8(0x30 + rest % 10))
      rest /= 10
    } while rest > 0
    while count - start < digits { append(0x30) }
    self[start...].reverse()
  }
}

/// The calls on sockets over which the load talks. None waits, but for connecting.
enum FanoutSocket {
  /// Returns a socket that is connected to a port of this machine.
  static func connect(to port: UInt16) throws -> Int32 {
    let socket = try make()
    var one: Int32 = 1
    setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    var address = loopback(port)
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Foundation.connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else {
      let code = errno
      close(socket)
      throw RoleProblem(text: "connect failed with errno \(code)")
    }
    return socket
  }

  /// Returns a port that was free a moment ago.
  static func freePort() throws -> UInt16 {
    let socket = try make()
    defer { close(socket) }
    var address = loopback(0)
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(socket, $0, size) == 0 ? getsockname(socket, $0, &size) : -1
      }
    }
    guard result == 0 else { throw RoleProblem(text: "no port is free, errno \(errno)") }
    return UInt16(bigEndian: address.sin_port)
  }

  private static func make() throws -> Int32 {
    let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    let made = socket(AF_INET, type, 0)
    guard made >= 0 else { throw RoleProblem(text: "socket failed with errno \(errno)") }
    return made
  }

  private static func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return address
  }

  /// Reads bytes into a buffer from a place on.
  ///
  /// - Returns: their number; 0 if none are there.
  static func receive(
    from socket: Int32, into buffer: inout [UInt8], at place: Int, upTo limit: Int
  ) throws -> Int {
    precondition(place + limit <= buffer.count, "The buffer is too small.")
    let count = buffer.withUnsafeMutableBytes {
      recv(socket, $0.baseAddress! + place, limit, Int32(MSG_DONTWAIT))
    }
    if count > 0 { return count }
    if count < 0, [EAGAIN, EINTR].contains(errno) { return 0 }
    let reason = count == 0 ? "without a word" : "with errno \(errno)"
    throw RoleProblem(text: "the server has closed a connection \(reason)")
  }

  /// Writes the bytes from a place on.
  ///
  /// - Returns: the number of those that the system took.
  static func send(_ bytes: [UInt8], from place: Int, to socket: Int32) throws -> Int {
    precondition(place < bytes.count, "There is nothing to send.")
    let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
    let count = bytes.withUnsafeBytes {
      Foundation.send(socket, $0.baseAddress! + place, $0.count - place, flags)
    }
    if count >= 0 { return count }
    if [EAGAIN, EINTR].contains(errno) { return 0 }
    throw RoleProblem(text: "the server has closed a connection, errno \(errno)")
  }
}
#endif
