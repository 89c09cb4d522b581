import Pacing
import Synchronization
import Testing

@testable import JetstreamWebSocket

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Tells of what a test makes ready, and notes what it is asked for.
private final class FakePoller: Poller {
  struct State: Sendable {
    var watched: [UInt64: Readiness] = [:]
    var ready: [(UInt64, Readiness)] = []
    var wakes = 0
    var blockingWaits = 0
    /// The limit of the last wait.
    var limit: Duration?
    var now = Duration.zero
    /// True if the system has no room for another descriptor.
    var isFull = false
  }

  let state = Mutex(State())

  func watch(
    _ descriptor: Int32, as id: UInt64, for events: Readiness, insteadOf old: Readiness
  ) -> Bool {
    state.withLock { state in
      #expect(state.watched[id] ?? [] == old)
      if state.isFull, old.isEmpty { return false }
      state.watched[id] = events.isEmpty ? nil : events
      return true
    }
  }

  func wait(upTo limit: Duration?, _ body: (UInt64, Readiness) -> Void) {
    let ready = state.withLock { state in
      state.limit = limit
      if limit != .zero { state.blockingWaits += 1 }
      defer { state.ready = [] }
      return state.ready
    }
    for (id, events) in ready { body(id, events) }
  }

  func wake() { state.withLock { $0.wakes += 1 } }

  var now: Duration { state.withLock { $0.now } }

  var wakes: Int { state.withLock { $0.wakes } }

  var watched: [UInt64: Readiness] { state.withLock { $0.watched } }

  func makeReady(_ ids: UInt64..., events: Readiness = .read) {
    state.withLock { $0.ready += ids.map { ($0, events) } }
  }
}

/// Notes the events of its descriptor.
private final class Socket: LoopSource {
  private let heard = Mutex<[Readiness]>([])
  private let refused = Mutex(0)
  private let onReady: @Sendable () -> Void

  init(_ onReady: @escaping @Sendable () -> Void = {}) { self.onReady = onReady }

  var events: [Readiness] { heard.withLock { $0 } }

  var refusals: Int { refused.withLock { $0 } }

  func cannotBeWatched() { refused.withLock { $0 += 1 } }

  func ready(_ events: Readiness) {
    heard.withLock { $0.append(events) }
    onReady()
  }
}

/// Keeps what tests note, in order.
private final class Steps: Sendable {
  private let texts = Mutex<[String]>([])

  func note(_ text: String) { texts.withLock { $0.append(text) } }

  var all: [String] { texts.withLock { $0 } }
}

/// The names of sockets.
private final class Numbers: Sendable { let all = Mutex<[UInt64]>([]) }

@Suite struct EventLoopTests {
  private let poller = FakePoller()
  private let loop: EventLoop
  private let steps = Steps()

  init() { loop = EventLoop(poller: poller) }

  private var noted: [String] { steps.all }

  /// Adds a socket that is watched for reading.
  private func add(_ socket: Socket) -> UInt64 {
    let ids = Numbers()
    loop.execute { [loop] in
      let id = loop.add(7, socket)
      loop.watch(id, for: .read)
      ids.all.withLock { $0.append(id) }
    }
    loop.turn(isBlocking: false)
    return ids.all.withLock { $0[0] }
  }

  @Test("What comes until the loop takes it wakes the loop once")
  func wakes() {
    let steps = steps
    for number in 0..<3 { loop.execute { steps.note("\(number)") } }
    #expect(poller.wakes == 1)
    loop.turn()
    #expect(noted == ["0", "1", "2"])
    loop.execute { steps.note("3") }
    #expect(poller.wakes == 2)
    loop.turn()
    #expect(noted.count == 4)
  }

  @Test("A turn reads, then does the work that it was given, and writes at its end")
  func order() {
    let steps = steps
    let socket = Socket { [loop] in
      steps.note("read")
      loop.executeAtEnd { steps.note("write") }
    }
    let id = add(socket)
    loop.execute { steps.note("work") }
    poller.makeReady(id)
    loop.turn()
    #expect(noted == ["read", "work", "write"])
  }

  @Test("Work for the end of a turn that another thread gives is done like any other")
  func endFromOutside() {
    let steps = steps
    loop.executeAtEnd { steps.note("write") }
    #expect(poller.wakes == 1)
    loop.turn()
    #expect(noted == ["write"])
  }

  @Test("What the end of a turn adds waits for the next turn, which does not sleep")
  func endless() {
    let steps = steps
    loop.execute { [loop] in
      loop.executeAtEnd {
        steps.note("first")
        loop.executeAtEnd { steps.note("second") }
      }
    }
    loop.turn()
    #expect(noted == ["first"])
    let waits = poller.state.withLock { $0.blockingWaits }
    loop.turn()
    #expect(noted == ["first", "second"])
    #expect(poller.state.withLock { $0.blockingWaits } == waits)
    loop.turn()
    #expect(poller.state.withLock { $0.blockingWaits } == waits + 1)
  }

  @Test("A socket that another one has removed is not told of what has come for it")
  func removed() {
    let (loop, ids) = (loop, Numbers())
    let first = Socket { for id in ids.all.withLock({ $0 }).dropFirst() { loop.remove(id) } }
    let second = Socket()
    let both = [add(first), add(second)]
    ids.all.withLock { $0 = both }
    poller.makeReady(both[0], both[1])
    loop.turn()
    #expect(first.events == [.read] && second.events.isEmpty)
    #expect(poller.watched == [both[0]: .read])
  }

  @Test("A socket hears only of the events for which it is watched")
  func unwatched() {
    let socket = Socket()
    let id = add(socket)
    poller.makeReady(id, events: [.read, .write])
    loop.turn()
    #expect(socket.events == [.read])
    loop.execute { [loop] in loop.watch(id, for: []) }
    loop.turn()
    poller.makeReady(id, events: [.read, .write])
    loop.turn()
    #expect(socket.events == [.read])
  }

  @Test("A socket that cannot be watched is told so, and can be watched once there is room")
  func full() {
    poller.state.withLock { $0.isFull = true }
    let socket = Socket()
    let id = add(socket)
    #expect(socket.refusals == 1 && poller.watched.isEmpty)
    poller.state.withLock { $0.isFull = false }
    loop.execute { [loop] in loop.watch(id, for: .read) }
    loop.turn()
    #expect(socket.refusals == 1 && poller.watched == [id: .read])
  }

  @Test(
    "What the loop asks itself for is done in its next turn, without a wake-up and without sleep")
  func own() {
    let steps = steps
    loop.execute { [loop] in
      steps.note("first")
      loop.execute { steps.note("second") }
    }
    #expect(poller.wakes == 1)
    loop.turn()
    #expect(noted == ["first"])
    let waits = poller.state.withLock { $0.blockingWaits }
    loop.turn()
    #expect(noted == ["first", "second"] && poller.wakes == 1)
    #expect(poller.state.withLock { $0.blockingWaits } == waits)
  }

  @Test("Work for later is done in the order of its times, and no wait goes on past the first")
  func timers() {
    let (poller, loop, steps) = (poller, loop, steps)
    loop.execute {
      loop.after(.seconds(2)) { steps.note("second") }
      loop.after(.seconds(1)) {
        steps.note("first")
        loop.after(.zero) { steps.note("at once") }
      }
      loop.after(.seconds(2)) { steps.note("third") }
    }
    // From another thread than the loop's, the time counts from the call all the same.
    loop.after(.seconds(3)) { steps.note("last") }
    loop.turn()
    #expect(noted.isEmpty)
    poller.state.withLock { $0.now = .milliseconds(900) }
    loop.turn()
    #expect(poller.state.withLock { $0.limit } == .milliseconds(100) && noted.isEmpty)
    poller.state.withLock { $0.now = .seconds(1) }
    loop.turn()
    #expect(noted == ["first"])
    loop.turn()
    #expect(poller.state.withLock { $0.limit } == .zero && noted == ["first", "at once"])
    poller.state.withLock { $0.now = .seconds(5) }
    loop.turn()
    #expect(noted == ["first", "at once", "second", "third", "last"])
    loop.turn()
    #expect(poller.state.withLock { $0.limit } == nil)
  }

  @Test("Timers come in the order of their times, and those of one time in their own")
  func timerOrder() {
    var random = SeededGenerator()
    let steps = steps
    var timers = LoopTimers()
    let times = (0..<500).map { _ in Int.random(in: 0..<100, using: &random) }
    for (number, time) in times.enumerated() {
      timers.add(.seconds(time)) { steps.note("\(number)") }
    }
    for now in [20, 20, 70, 99] {
      for work in timers.takeDue(at: .seconds(now)) { work() }
      #expect(noted.count == times.filter { $0 <= now }.count, "seed \(random.seed)")
    }
    let order = times.indices.sorted { (times[$0], $0) < (times[$1], $1) }
    #expect(noted == order.map { "\($0)" }, "seed \(random.seed)")
    #expect(timers.first == nil)
  }

  /// Counts the ends of a transport.
  private final class Ends: TransportHandler {
    private let ends = Mutex(0)

    var count: Int { ends.withLock { $0 } }

    func received(_ bytes: ArraySlice<UInt8>) {}
    func ended() { ends.withLock { $0 += 1 } }
  }

  @Test("A connection that cannot be watched ends once, and an attempt to connect fails")
  func unwatchable() {
    poller.state.withLock { $0.isFull = true }
    let (handler, loop, steps) = (Ends(), loop, steps)
    func transport() -> SocketTransport {
      SocketTransport(descriptor: socket(AF_INET, streamType, 0), loop: loop) {
        steps.note("closed")
      }
    }
    let reading = transport()
    reading.setHandler(handler)
    reading.resumeReading()
    for _ in 0..<3 { loop.turn(isBlocking: false) }
    #expect(handler.count == 1 && reading.isClosed)
    #expect(noted == ["closed"])
    let connecting = transport()
    connecting.awaitConnect { steps.note("failed \($0 == ENOMEM)") }
    for _ in 0..<3 { loop.turn(isBlocking: false) }
    #expect(noted == ["closed", "failed true", "closed"] && connecting.isClosed)
  }

  @Test("A connection pauses at its limit of unread bytes, which may be raised")
  func unreadLimit() async throws {
    var ends: [Int32] = [0, 0]
    try #require(socketpair(AF_UNIX, streamType, 0, &ends) == 0)
    let (loop, configuration) = (loop, WebSocketConfiguration(maximumInboundBytes: 10))
    let connection = WebSocketConnection(
      role: .server, transport: SocketTransport(descriptor: ends[0], loop: loop),
      configuration: configuration, subprotocol: nil)
    func step(_ work: @escaping @Sendable () -> Void) {
      loop.execute(work)
      for _ in 0..<2 { loop.turn(isBlocking: false) }
    }
    func receive(_ count: Int) {
      let frame = [0x82, 0x80 | UInt8(count), 0, 0, 0, 0] + [UInt8](repeating: 7, count: count)
      step { connection.received(frame[...]) }
    }
    step { connection.start(with: []) }
    #expect(poller.watched.count == 1)
    receive(10)
    #expect(poller.watched.isEmpty && connection.inboundBytes == 10)
    connection.setLimits(configuration.limits, maximumInboundBytes: 30)
    #expect(try await connection.receive()?.bytes.count == 10)
    step {}
    #expect(poller.watched.count == 1)
    receive(20)
    #expect(poller.watched.count == 1)
    // Half a message counts beside it.
    step { connection.received([0x82, 0x84, 0, 0, 0, 0, 1, 2]) }
    #expect(poller.watched.count == 1 && connection.inboundBytes == 22)
    step { connection.received([3, 4]) }
    receive(10)
    #expect(poller.watched.isEmpty && connection.inboundBytes == 34)
    connection.abort()
    step {}
    close(ends[1])
  }

  @Test("A loop keeps a socket until it is removed")
  func keeps() {
    let loop = loop
    weak var socket: Socket?
    let id = {
      let made = Socket()
      socket = made
      return add(made)
    }()
    #expect(socket != nil)
    loop.execute { loop.remove(id) }
    loop.turn()
    #expect(socket == nil)
  }

  @Test(
    "A task that prefers the loop runs on its thread, in one turn as long as it waits for nothing else"
  )
  func tasks() async throws {
    let (loop, steps) = (loop, steps)
    let task = Task.detached(executorPreference: loop.tasks) {
      steps.note("begins \(loop.isCurrent)")
      await Task.yield()
      steps.note("goes on \(loop.isCurrent)")
    }
    // The task is put into the mailbox at some moment.
    try await wait { poller.wakes > 0 }
    loop.turn()
    #expect(noted == ["begins true", "goes on true"])
    await task.value
  }

  @Test("A task that yields until something happens lets the loop's other work have its turn")
  func yields() async throws {
    let (loop, steps) = (loop, steps)
    let task = Task.detached(executorPreference: loop.tasks) {
      steps.note("begins")
      // It ends as well if it keeps the loop to itself.
      for _ in 0..<100_000 where !steps.all.contains("other work") { await Task.yield() }
      steps.note("goes on")
    }
    try await wait { poller.wakes > 0 }
    loop.turn()
    #expect(noted == ["begins"])
    loop.execute { steps.note("other work") }
    loop.turn()
    #expect(poller.state.withLock { $0.limit } == .zero)
    #expect(noted == ["begins", "other work", "goes on"])
    await task.value
  }

  /// An actor on a loop.
  private actor Resident {
    private let loop: EventLoop

    init(_ loop: EventLoop) { self.loop = loop }

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    func step(_ steps: Steps) {
      assertIsolated()
      steps.note("within \(loop.isCurrent)")
    }
  }

  @Test("A task that prefers the loop enters an actor on it and comes back in one turn")
  func residents() async throws {
    let (loop, steps) = (loop, steps)
    let resident = Resident(loop)
    let task = Task.detached(executorPreference: loop.tasks) {
      await resident.step(steps)
      steps.note("outside \(loop.isCurrent)")
    }
    try await wait { poller.wakes > 0 }
    loop.turn()
    #expect(noted == ["within true", "outside true"])
    #expect(poller.wakes == 1)
    await task.value
  }

  @Test("A call from elsewhere enters an actor on the loop in its next turn")
  func calls() async throws {
    let (loop, steps) = (loop, steps)
    let resident = Resident(loop)
    let task = Task.detached { await resident.step(steps) }
    try await wait { poller.wakes > 0 }
    #expect(noted.isEmpty)
    loop.turn()
    await task.value
    #expect(noted == ["within true"])
  }

  @Test("The end of a peer wakes no loop that does not watch for it")
  func unwatchedEnd() throws {
    // The poller of the system tells of a peer that is gone even if nothing is watched.
    #if canImport(Darwin)
    let system = KqueuePoller()
    #else
    let system = EpollPoller()
    #endif
    let ends = ChildProcess.whileNoneStarts {
      var ends: [Int32] = [0, 0]
      guard socketpair(AF_UNIX, streamType, 0, &ends) == 0 else { return [Int32]() }
      // A process that inherits the other end would keep it open.
      for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
      return ends
    }
    try #require(ends.count == 2)
    #expect(system.watch(ends[0], as: 1, for: .read, insteadOf: []))
    close(ends[1])
    var told: [Readiness] = []
    system.wait(upTo: nil) { told.append($1) }
    #expect(told.first?.contains(.read) == true)
    #expect(system.watch(ends[0], as: 1, for: [], insteadOf: .read))
    told = []
    system.wake()
    system.wait(upTo: nil) { told.append($1) }
    #expect(told.isEmpty)
    close(ends[0])
  }

  @Test("A wait ends when its time is up, and not before")
  func limitedWait() {
    #if canImport(Darwin)
    let system = KqueuePoller()
    #else
    let system = EpollPoller()
    #endif
    let begin = system.now
    let limit = Duration.microseconds(1500)
    system.wait(upTo: limit) { _, _ in Issue.record("Nothing is watched.") }
    #expect(system.now - begin >= limit)
  }

  @Test("A wake-up that comes before the wait ends it")
  func earlyWake() {
    #if canImport(Darwin)
    let system = KqueuePoller()
    #else
    let system = EpollPoller()
    #endif
    system.wake()
    system.wake()
    var told = 0
    system.wait(upTo: nil) { _, _ in told += 1 }
    system.wait(upTo: .zero) { _, _ in told += 1 }
    #expect(told == 0)
  }
}

#if canImport(Darwin)
private let streamType = SOCK_STREAM
#else
private let streamType = Int32(SOCK_STREAM.rawValue)
#endif
