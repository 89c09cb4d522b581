import Foundation
import Synchronization

/// A process beside the tests, started by `posix_spawn`: `Process.run()` of the open-source Foundation has crashed while
/// other threads were in the middle of something else.
///
/// It leads a process group of its own and begins with no signal blocked or ignored: the threads that run tests block most
/// of them, and a process inherits that from the thread that starts it.
public final class ChildProcess: Sendable {
  /// The number by which the system knows it.
  private let processIdentifier: pid_t
  /// The exit code, or the number of the signal that has ended it; nil while it runs.
  private let status: Mutex<Int32?>
  private let running = DispatchGroup()
  /// Held while a process is started and while files are open that none may inherit.
  private static let starting = Mutex(())

  /// Makes a pipe for one process. No other process inherits its ends, which would keep the pipe open.
  public static func pipe() -> Pipe {
    whileNoneStarts {
      let pipe = Pipe()
      for end in [pipe.fileHandleForReading, pipe.fileHandleForWriting] {
        _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC)
      }
      return pipe
    }
  }

  /// Does something that opens files for a moment, so that no process inherits them.
  public static func whileNoneStarts<Result>(_ body: () -> sending Result) -> sending Result {
    starting.withLock { _ in body() }
  }

  /// Starts an executable.
  ///
  /// - Parameters:
  ///   - folder: the working directory; nil for that of the tests.
  ///   - input, output, errors: the pipes that it reads and writes, from ``pipe()``; nil for what the tests themselves have.
  ///   - onExit: called on some thread when it has ended, with what ``waitUntilExit()`` returns.
  public init(
    _ executable: URL, _ arguments: [String], in folder: URL? = nil, input: Pipe? = nil,
    output: Pipe? = nil, errors: Pipe? = nil, onExit: @escaping @Sendable (Int32) -> Void = { _ in }
  ) throws {
    // The shell changes the folder: the call for it is not one that every C library declares.
    let (program, words) =
      folder.map { folder in
        ("/bin/sh", ["-c", "cd \"$0\" && exec \"$@\"", folder.path, executable.path] + arguments)
      } ?? (executable.path, arguments)
    processIdentifier = try Self.starting.withLock { _ in
      try Self.spawn(
        program, words,
        files: [
          (input?.fileHandleForReading.fileDescriptor, 0),
          (output?.fileHandleForWriting.fileDescriptor, 1),
          (errors?.fileHandleForWriting.fileDescriptor, 2),
        ])
    }
    status = Mutex(nil)
    // A reader sees the end of a pipe only once every copy of the writing end is closed, so these may not stay open here.
    try input?.fileHandleForReading.close()
    try output?.fileHandleForWriting.close()
    try errors?.fileHandleForWriting.close()
    running.enter()
    Thread.detachNewThread { [self] in
      let code = reap()
      running.leave()
      onExit(code)
    }
  }

  /// Sends a signal, unless the process has ended.
  public func signal(_ number: Int32) {
    status.withLock { if $0 == nil { kill(processIdentifier, number) } }
  }

  /// Stops it and waits until none of its threads runs, or until it has ended.
  ///
  /// The signal alone stops nothing yet: the other threads go on until the one that takes it gets its turn.
  public func freeze() {
    signal(SIGSTOP)
    var info = siginfo_t()
    while waitid(P_PID, id_t(processIdentifier), &info, WSTOPPED | WEXITED | WNOWAIT) != 0,
      errno == EINTR
    {}
  }

  /// Asks it to end.
  public func terminate() { signal(SIGTERM) }

  /// Waits for the end. Returns the exit code, or the number of the signal that has ended it.
  @discardableResult
  public func waitUntilExit() -> Int32 {
    running.wait()
    return status.withLock { $0 ?? -1 }
  }

  /// Waits for the end like ``waitUntilExit()``, without blocking the thread.
  @discardableResult
  public func exitCode() async -> Int32 { await blocking { [self] in waitUntilExit() } }

  /// Writes to a pipe. Throws if its reader is gone, for which the system would end the tests with SIGPIPE.
  ///
  /// The signal is blocked for this thread only. If the process ignored it, no test would notice code that raises it.
  public static func write(_ data: Data, to pipe: FileHandle) throws {
    var (broken, before, pending) = (sigset_t(), sigset_t(), sigset_t())
    sigemptyset(&broken)
    sigaddset(&broken, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &broken, &before)
    defer {
      // One that was raised meanwhile would come as soon as it is not blocked any more.
      sigpending(&pending)
      var number: Int32 = 0
      if sigismember(&before, SIGPIPE) == 0, sigismember(&pending, SIGPIPE) == 1 {
        sigwait(&broken, &number)
      }
      pthread_sigmask(SIG_SETMASK, &before, nil)
    }
    try pipe.write(contentsOf: data)
  }

  /// Waits for the end and takes the number of the process back, so that from then on no signal is sent to it.
  private func reap() -> Int32 {
    var info = siginfo_t()
    while waitid(P_PID, id_t(processIdentifier), &info, WEXITED | WNOWAIT) != 0, errno == EINTR {}
    return status.withLock { status in
      var raw: Int32 = 0
      while waitpid(processIdentifier, &raw, 0) < 0, errno == EINTR {}
      let code = raw & 0x7f == 0 ? (raw >> 8) & 0xff : raw & 0x7f
      status = code
      return code
    }
  }

  private static func spawn(
    _ path: String, _ arguments: [String], files: [(own: Int32?, child: Int32)]
  ) throws -> pid_t {
    #if canImport(Darwin)
    var actions: posix_spawn_file_actions_t?
    var attributes: posix_spawnattr_t?
    #else
    var actions = posix_spawn_file_actions_t()
    var attributes = posix_spawnattr_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    posix_spawnattr_init(&attributes)
    defer {
      posix_spawn_file_actions_destroy(&actions)
      posix_spawnattr_destroy(&attributes)
    }
    var (none, all) = (sigset_t(), sigset_t())
    sigemptyset(&none)
    sigfillset(&all)
    // Their default action cannot be changed, and asking for it is an error on some systems.
    for number in [SIGKILL, SIGSTOP] { sigdelset(&all, number) }
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    posix_spawnattr_setflags(
      &attributes,
      Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    for case (let own?, let child) in files {
      posix_spawn_file_actions_adddup2(&actions, own, child)
    }
    let words = ([path] + arguments).map { strdup($0) } + [nil]
    defer { words.forEach { free($0) } }
    var result: pid_t = 0
    let code = posix_spawn(&result, path, &actions, &attributes, words, environ)
    guard code == 0 else { throw POSIXError(POSIXErrorCode(rawValue: code) ?? .EINVAL) }
    return result
  }
}
