import Foundation

/// The descriptors of this process.
enum Descriptors {
  #if canImport(Darwin)
  private static let resource = RLIMIT_NOFILE
  #else
  private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
  #endif

  private static var limit: rlimit {
    get {
      var limit = rlimit()
      guard getrlimit(resource, &limit) == 0 else { SocketProcess.fail("there is no limit") }
      return limit
    }
    set {
      var limit = newValue
      guard setrlimit(resource, &limit) == 0 else { SocketProcess.fail("the limit stays") }
    }
  }

  /// Lets the process have as many as the system permits.
  static func raiseLimit() {
    limit.rlim_cur = min(limit.rlim_max, rlim_t(Int32.max))
    #if canImport(Darwin)
    // No more than that is accepted, whatever the limit says.
    limit.rlim_cur = min(limit.rlim_cur, rlim_t(OPEN_MAX))
    #endif
  }

  /// The number of sockets. Others come and go: Dispatch, for one, reads files about its threads.
  static var socketCount: Int {
    numbers.count { number in
      var status = stat()
      return fstat(number, &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
    }
  }

  private static var numbers: [Int32] {
    let last = Int32(clamping: limit.rlim_cur)
    return (0..<last).filter { fcntl($0, F_GETFD) >= 0 }
  }

  /// Lowers the limit so far that no descriptor can be opened, and fills the gaps. Returns what fills them.
  static func exhaust() -> [Int32] {
    limit.rlim_cur = rlim_t(numbers.last! + 1)
    var filling: [Int32] = []
    while true {
      let descriptor = dup(0)
      if descriptor < 0 { return filling }
      filling.append(descriptor)
    }
  }
}
