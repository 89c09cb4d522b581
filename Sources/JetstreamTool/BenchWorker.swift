import Foundation
import Jetstream
import Synchronization

/// A process that runs a share of the clients of a bench: the hidden command `jetstream bench-worker PLAN`.
///
/// It obeys the orders on its standard input, and closes its clients and ends with it. It reports on its standard output.
enum BenchWorker {
  /// Keeps lines of several threads apart.
  private static let output = Mutex(())

  static func run(_ arguments: [String]) async -> Int32 {
    guard let text = arguments.first, let plan = BenchLines.value(BenchPlan.self, of: text) else {
      Console.error("jetstream bench-worker: this is a part of jetstream bench.")
      return BenchCommand.Status.usage.rawValue
    }
    // A terminal interrupts all processes; the parent decides what becomes of this one.
    signal(SIGINT, SIG_IGN)
    if let shortage = shortage(of: OpenFiles.raiseLimit(), for: plan.parts.count) { fail(shortage) }
    let orders = orders()
    let clients = BenchClients(plan)
    let opening = Task {
      let limit = Task {
        try await Task.sleep(for: .seconds(plan.options.connectLimit))
        await fail(clients.lateness)
      }
      do {
        try await clients.open()
      } catch {
        fail(sentence(error))
      }
      limit.cancel()
      send(.ready)
    }
    var load: Task<Void, Never>?
    var hasEnded = false
    for await order in orders {
      switch order {
      case .begin(let start):
        await opening.value
        load = Task { await clients.load(from: start) { send($0) } }
      case .drain(let accepted):
        await load?.value
        let line = await clients.drain(accepted: accepted)
        await clients.removeNotes(within: 2 * BenchClock.second)
        send(line)
        hasEnded = true
      case .stop:
        load?.cancel()
        let line = await clients.stop()
        await clients.removeNotes(within: BenchClock.second)
        send(line)
        hasEnded = true
      }
    }
    // The parent closes the input when the writers of all workers have removed their models, or it has gone. A client that
    // closed earlier would still be sent what the writers of others do, and the server would warn of it.
    await clients.close()
    return (hasEnded ? BenchCommand.Status.success : .failed).rawValue
  }

  /// Returns the reason for which a process that may have so many files open cannot run so many clients; nil if it can.
  /// Otherwise the clients that get no socket would try again until their time is up.
  static func shortage(of files: Int, for clients: Int) -> String? {
    // Beside a socket for each client, there are the standard streams and what each event loop has.
    let needed = clients + 32 + 4 * ProcessInfo.processInfo.activeProcessorCount
    guard files < needed else { return nil }
    return
      "a process with \(clients) clients needs \(needed) open files and may have \(files) files. "
      + "Use more --processes, or raise the limit with ulimit -n."
  }

  private static func sentence(_ error: any Error) -> String {
    switch error {
    case ChangeSetError.abandoned(let reason): reason
    default: "\(error)"
    }
  }

  private static func send(_ line: BenchLine) {
    let data = BenchLines.data(line)
    output.withLock { _ in try? FileHandle.standardOutput.write(contentsOf: data) }
  }

  private static func fail(_ sentence: String) -> Never {
    send(.failed(sentence))
    exit(BenchCommand.Status.failed.rawValue)
  }

  /// Returns the orders of the parent.
  private static func orders() -> AsyncStream<BenchOrder> {
    let (orders, continuation) = AsyncStream.makeStream(of: BenchOrder.self)
    Thread.detachNewThread {
      while let line = readLine() {
        if let order = BenchLines.value(BenchOrder.self, of: line) { continuation.yield(order) }
      }
      continuation.finish()
    }
    return orders
  }
}
