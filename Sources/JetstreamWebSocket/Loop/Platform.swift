internal import CEventLoop

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The socket calls of this module, with the differences between platforms hidden.
enum Platform {
  /// Makes a non-blocking TCP socket that is not inherited by child processes.
  static func makeSocket(family: Int32) -> Int32 {
    #if canImport(Darwin)
    let descriptor = socket(family, SOCK_STREAM, 0)
    prepare(descriptor)
    #else
    let descriptor = socket(family, stream | privateFlags, 0)
    #endif
    return descriptor >= 0 ? descriptor : -errno
  }

  /// Accepts one waiting connection from a listening socket, as a non-blocking socket that is not inherited.
  static func acceptConnection(on listening: Int32) -> Int32 {
    #if canImport(Darwin)
    let descriptor = accept(listening, nil, nil)
    prepare(descriptor)
    #else
    let descriptor = jetstream_accept(listening)
    #endif
    return descriptor >= 0 ? descriptor : -errno
  }

  #if canImport(Darwin)
  /// Makes a descriptor non-blocking and private to this process, and keeps a broken connection
  /// from raising SIGPIPE. Does nothing where there is no descriptor.
  private static func prepare(_ descriptor: Int32) {
    guard descriptor >= 0 else { return }
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    set(descriptor, SOL_SOCKET, SO_NOSIGPIPE, to: 1)
  }
  #elseif canImport(Musl)
  private static let stream = SOCK_STREAM
  private static let privateFlags = SOCK_NONBLOCK | SOCK_CLOEXEC
  #else
  private static let stream = Int32(SOCK_STREAM.rawValue)
  /// The flags of a socket that is non-blocking and private to this process from its first moment on: a child that another
  /// thread starts meanwhile would keep the connection open.
  private static let privateFlags = Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
  #endif

  /// Sends small writes at once, and lets the kernel notice peers that vanished.
  static func tune(_ descriptor: Int32) {
    set(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, to: 1)
    set(descriptor, SOL_SOCKET, SO_KEEPALIVE, to: 1)
  }

  /// Sets one integer option. A failure is ignored: no option here is essential.
  static func set(_ descriptor: Int32, _ level: Int32, _ option: Int32, to value: Int32) {
    _ = withUnsafeBytes(of: value) {
      setsockopt(descriptor, level, option, $0.baseAddress, socklen_t($0.count))
    }
  }

  /// Makes closing reset the connection and drop what was not sent yet.
  static func resetOnClose(_ descriptor: Int32) {
    let value = linger(l_onoff: 1, l_linger: 0)
    _ = withUnsafeBytes(of: value) {
      setsockopt(descriptor, SOL_SOCKET, SO_LINGER, $0.baseAddress, socklen_t($0.count))
    }
  }

  /// Returns the positive `errno` with which a connection attempt ended, or 0.
  static func pendingError(of descriptor: Int32) -> Int32 {
    var value: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    let result = getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &value, &size)
    return result == 0 ? value : errno
  }

  /// Reads the available bytes, at most as many as `buffer` holds. Returns 0 at the peer's end.
  static func receive(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
    return count >= 0 ? count : Int(-errno)
  }

  #if canImport(Darwin)
  private static let sendFlags: Int32 = 0
  #else
  private static let sendFlags = Int32(MSG_NOSIGNAL)
  #endif

  /// Writes one buffer. SIGPIPE is not raised.
  static func send(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
    #if canImport(Darwin)
    let count = Darwin.send(descriptor, bytes.baseAddress, bytes.count, sendFlags)
    #elseif canImport(Musl)
    let count = Musl.send(descriptor, bytes.baseAddress, bytes.count, sendFlags)
    #else
    let count = Glibc.send(descriptor, bytes.baseAddress, bytes.count, sendFlags)
    #endif
    return count >= 0 ? count : Int(-errno)
  }

  static func send(_ descriptor: Int32, _ bytes: [UInt8]) -> Int {
    bytes.withUnsafeBytes { send(descriptor, $0) }
  }

  /// Writes several buffers with one call. SIGPIPE is not raised.
  static func send(_ descriptor: Int32, _ vectors: inout [iovec]) -> Int {
    vectors.withUnsafeMutableBufferPointer { buffer in
      var message = msghdr()
      message.msg_iov = buffer.baseAddress
      message.msg_iovlen = .init(buffer.count)
      let count = sendmsg(descriptor, &message, sendFlags)
      return count >= 0 ? count : Int(-errno)
    }
  }

  /// Ends the sending half: the peer reads an end after everything sent before.
  static func finishSending(_ descriptor: Int32) {
    _ = shutdown(descriptor, Int32(SHUT_WR))
  }

  /// Closes the descriptor.
  static func closeDescriptor(_ descriptor: Int32) {
    _ = close(descriptor)
  }

  /// Returns whether a negative result only means that nothing can be read or written right now.
  static func isRetry(_ result: Int) -> Bool {
    result == Int(-EAGAIN) || result == Int(-EWOULDBLOCK)
  }
}
