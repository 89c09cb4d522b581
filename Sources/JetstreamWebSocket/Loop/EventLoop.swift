internal import CEventLoop
import Foundation
import Synchronization

/// One thread on which sockets are read and written, and on which actors can live.
///
/// A few loops serve all the connections of a process, so that thousands of sockets take no more threads than there are
/// processors. A turn of a loop has three parts: it reads the sockets that are ready, does the work that it was given,
/// and ends with what is best done once for all of that, which is writing.
///
/// An actor that has a loop as its executor runs on the loop's thread. A server that lives on such an actor takes its
/// connections on the same loop, and judges and answers what they receive without a change of threads:
///
/// ```swift
/// actor Room {
///   private let loop = EventLoop.next()
///   nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
/// }
/// ```
///
/// Code that blocks a loop, or that takes long, holds up all its connections.
public final class EventLoop: SerialExecutor, @unchecked Sendable {
  // Sendable although there is state without a lock: all of that is used on the loop's thread only, which
  // `requireCurrent()` checks; what other threads hand over is in the mailbox, behind a lock.

  /// The largest number of bytes of one read.
  static let readSize = 64 << 10
  /// The largest number of times in a turn that the loop runs the jobs which those before them have enqueued.
  private static let mostRounds = 64

  private enum Work: Sendable {
    case step(@Sendable () -> Void)
    /// A job of an actor or of a task, which has to be run in the way in which it was enqueued.
    case job(UnownedJob, ofTask: Bool)
  }

  /// The loop as the executor that tasks prefer.
  package final class Tasks: TaskExecutor {
    // The tasks that prefer the loop belong to its connections, and it outlives these.
    private unowned let loop: EventLoop

    fileprivate init(_ loop: EventLoop) { self.loop = loop }

    package func enqueue(_ job: consuming ExecutorJob) {
      loop.enqueue(UnownedJob(job), ofTask: true)
    }
  }

  private struct Mailbox: Sendable {
    var work: ContiguousArray<Work> = []
    /// True if the poller was woken for the work.
    var isSignalled = false
  }

  private struct Source {
    let descriptor: Int32
    var events: Readiness
    let handler: any LoopSource
  }

  private let poller: any Poller
  private let mailbox = Mutex(Mailbox())

  // Used on the loop's thread only.
  private var sources: [UInt64: Source] = [:]
  private var lastID: UInt64 = 0
  /// The jobs that the loop's own thread has enqueued.
  private var jobs: ContiguousArray<(job: UnownedJob, ofTask: Bool)> = []
  /// The work that the loop's own thread has asked for in this turn, and that is done in the next one.
  private var later: ContiguousArray<@Sendable () -> Void> = []
  private var endings: ContiguousArray<@Sendable () -> Void> = []
  /// The work for later turns, at times of the poller's clock.
  private var timers = LoopTimers()
  /// Room for one read, shared by all the sockets of the loop.
  private var scratch = [UInt8](repeating: 0, count: readSize)

  /// The loop as the executor that tasks prefer. What such a task does outside of actors runs on the loop. Never changes
  /// after `init`, which can only make it once the loop is there.
  package private(set) var tasks: Tasks!

  /// Makes a loop that turns only when ``turn(isBlocking:)`` is called, by one thread.
  init(poller: any Poller) {
    self.poller = poller
    tasks = Tasks(self)
  }

  /// Makes a loop with a thread of its own. Both live as long as the process.
  private convenience init(number: Int) {
    #if canImport(Darwin)
    self.init(poller: KqueuePoller())
    #else
    self.init(poller: EpollPoller())
    #endif
    let thread = Thread {
      while true {
        #if canImport(ObjectiveC)
        // The thread has no pool of its own: objects that are to be released later would be kept for ever.
        autoreleasepool { self.turn() }
        #else
        self.turn()
        #endif
      }
    }
    thread.name = "jetstream.loop.\(number)"
    thread.qualityOfService = .userInitiated
    thread.start()
  }

  private static let shared: [EventLoop] = {
    let count = min(8, max(2, ProcessInfo.processInfo.activeProcessorCount))
    return (0..<count).map(EventLoop.init)
  }()

  private static let rotation = Atomic<Int>(0)

  /// Returns one of the loops of the process, in rotation: as many as it has processors, from 2 to 8.
  public static func next() -> EventLoop {
    let ticket = rotation.wrappingAdd(1, ordering: .relaxed).oldValue
    return shared[Int(UInt(bitPattern: ticket) % UInt(shared.count))]
  }

  /// The loop of the process on whose thread the caller runs. Nil if that is no loop's.
  package static var current: EventLoop? {
    jetstream_loop() == nil ? nil : shared.first(where: \.isCurrent)
  }

  /// Returns true if an actor has a loop as its executor, and the caller runs on that loop's thread.
  package static func isHome(of actor: any Actor) -> Bool {
    guard let current else { return false }
    // Two references to executors are compared as the bytes that they are: there is no other way to do that.
    return withUnsafeBytes(of: actor.unownedExecutor) { one in
      withUnsafeBytes(of: current.asUnownedSerialExecutor()) { one.elementsEqual($0) }
    }
  }

  /// True on the loop's thread.
  var isCurrent: Bool {
    jetstream_loop() == UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
  }

  func requireCurrent() {
    precondition(isCurrent, "This may only be used on the thread of its event loop.")
  }

  // MARK: Actors and tasks

  /// Runs a job of an actor: in this turn, if it comes from the loop's thread and few have followed each other.
  public func enqueue(_ job: consuming ExecutorJob) { enqueue(UnownedJob(job), ofTask: false) }

  private func enqueue(_ job: UnownedJob, ofTask: Bool) {
    if isCurrent { jobs.append((job, ofTask)) } else { put(.job(job, ofTask: ofTask)) }
  }

  /// Traps unless the caller runs on the loop's thread.
  public func checkIsolated() { requireCurrent() }

  /// Runs a job of a task as one of the loop's actors, so that the task goes on without a break where it enters one.
  private func run(_ job: UnownedJob, ofTask: Bool) {
    if ofTask {
      job.runSynchronously(
        isolatedTo: asUnownedSerialExecutor(), taskExecutor: tasks.asUnownedTaskExecutor())
    } else {
      job.runSynchronously(on: asUnownedSerialExecutor())
    }
  }

  // MARK: Work

  /// Runs `work` on the loop's thread, in the order of a thread's calls: in the next turn, if this is the loop's thread.
  func execute(_ work: @escaping @Sendable () -> Void) {
    if isCurrent { later.append(work) } else { put(.step(work)) }
  }

  /// Runs `work` on the loop's thread, in the order in which all threads call this.
  package func post(_ work: @escaping @Sendable () -> Void) { put(.step(work)) }

  private func put(_ work: Work) {
    let isFirst = mailbox.withLock { mailbox in
      mailbox.work.append(work)
      defer { mailbox.isSignalled = true }
      return !mailbox.isSignalled
    }
    // One call of the system for all that comes until the loop takes it.
    if isFirst { poller.wake() }
  }

  /// Runs `work` at the end of this turn or, from another thread, as ``execute(_:)`` does.
  func executeAtEnd(_ work: @escaping @Sendable () -> Void) {
    if isCurrent { endings.append(work) } else { execute(work) }
  }

  /// Runs `work` on the loop's thread after `delay`. A timer cannot be cancelled: `work` checks whether it is still
  /// needed.
  func after(_ delay: Duration, _ work: @escaping @Sendable () -> Void) {
    // Timers of Dispatch need descriptors, and end the process if it has none left for the first of them.
    let time = poller.now + delay
    if isCurrent { timers.add(time, work) } else { put(.step { self.timers.add(time, work) }) }
  }

  // MARK: Sockets

  /// Tells `handler` from now on when the descriptor is ready for events that ``watch(_:for:)`` asks for. The loop keeps
  /// the handler until ``remove(_:)``.
  ///
  /// - Returns: the name of the descriptor in the loop, which no other one ever gets.
  func add(_ descriptor: Int32, _ handler: any LoopSource) -> UInt64 {
    requireCurrent()
    lastID += 1
    sources[lastID] = Source(descriptor: descriptor, events: [], handler: handler)
    return lastID
  }

  /// Watches a descriptor for exactly these events. Watching for none costs nothing, also while the peer is gone.
  func watch(_ id: UInt64, for events: Readiness) {
    requireCurrent()
    guard let source = sources[id], source.events != events else { return }
    if poller.watch(source.descriptor, as: id, for: events, insteadOf: source.events) {
      sources[id]!.events = events
    } else {
      source.handler.cannotBeWatched()
    }
  }

  /// Lets go of a descriptor, which may be closed then.
  func remove(_ id: UInt64) {
    watch(id, for: [])
    sources[id] = nil
  }

  /// Reads once from a socket. `result` is the result of the call; `bytes` is empty unless it is positive. Keeping the
  /// bytes past the next read of the loop costs a copy.
  func read(_ descriptor: Int32) -> (result: Int, bytes: ArraySlice<UInt8>) {
    requireCurrent()
    let result = scratch.withUnsafeMutableBytes { Platform.receive(descriptor, into: $0) }
    return (result, scratch[..<max(0, result)])
  }

  // MARK: Turns

  /// The time for which a turn may wait; nil if nothing is to be done then.
  private var limit: Duration? {
    guard later.isEmpty, endings.isEmpty, jobs.isEmpty else { return .zero }
    return timers.first.map { max(.zero, $0 - poller.now) }
  }

  /// Waits until there is something to do, and does it.
  ///
  /// - Parameter isBlocking: false not to wait.
  func turn(isBlocking: Bool = true) {
    let outer = jetstream_loop()
    jetstream_set_loop(Unmanaged.passUnretained(self).toOpaque())
    defer { jetstream_set_loop(outer) }
    poller.wait(upTo: isBlocking ? limit : .zero) { id, ready in
      // Another socket's handler may have let go of this one, or have stopped to watch it.
      guard let source = sources[id] else { return }
      let events = ready.intersection(source.events)
      if !events.isEmpty { source.handler.ready(events) }
    }
    let work = mailbox.withLock { mailbox in
      mailbox.isSignalled = false
      defer { mailbox.work = [] }
      return mailbox.work
    }
    let due = timers.first == nil ? [] : timers.takeDue(at: poller.now)
    for step in due { step() }
    let mine = later
    later = []
    for step in mine { step() }
    for item in work {
      switch item {
      case .step(let step): step()
      case .job(let job, let ofTask): run(job, ofTask: ofTask)
      }
    }
    // A task that yields until something happens comes back at once, again and again: the sockets, and what it waits
    // for, have their turn in between.
    var rounds = 0
    while !jobs.isEmpty, rounds < Self.mostRounds {
      rounds += 1
      let now = jobs
      jobs = []
      for (job, ofTask) in now { run(job, ofTask: ofTask) }
    }
    // Steps that these add wait for the next turn, so that reading is never put off for ever.
    let last = endings
    endings = []
    for step in last { step() }
  }
}

/// A user of a loop, which is told when its descriptor is ready.
protocol LoopSource: AnyObject, Sendable {
  /// Reads or writes, on the loop's thread.
  func ready(_ events: Readiness)

  /// Takes note that the system has no room to watch the descriptor: no event will come.
  func cannotBeWatched()
}
