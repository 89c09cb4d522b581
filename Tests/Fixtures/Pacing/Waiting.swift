import Foundation

/// What a test has waited for has not come.
public struct Overdue: Error, CustomStringConvertible {
  let place: String

  /// A sentence with the place of the wait.
  public var description: String { "What is waited for at \(place) has not come in a minute." }
}

/// Lets other tasks run until `condition` holds. Throws ``Overdue`` after a minute.
public func wait(
  isolation: isolated (any Actor)? = #isolation, file: StaticString = #fileID, line: Int = #line,
  until condition: () throws -> Bool
) async throws {
  var turns = Turns(file: file, line: line)
  while try !condition() { try await turns.next() }
}

/// The pauses between one look at what a test waits for and the next.
///
/// Most of it comes within a few turns. What takes longer is looked at less often, by an eighth of the time that has
/// passed: a hundred tests wait at a time, and would take the processors from those that work.
public struct Turns {
  private let place: String
  private let start = ContinuousClock.now
  private var count = 0

  /// Begins with the first look.
  public init(file: StaticString = #fileID, line: Int = #line) { place = "\(file):\(line)" }

  /// Lets other tasks run. Throws ``Overdue`` a minute after the first look, and an error if the task is cancelled.
  public mutating func next(isolation: isolated (any Actor)? = #isolation) async throws {
    let passed = ContinuousClock.now - start
    guard passed < .seconds(60) else { throw Overdue(place: place) }
    count += 1
    if count < 20 {
      await Task.yield()
    } else {
      try await Task.sleep(for: min(max(passed / 8, .milliseconds(1)), .milliseconds(50)))
    }
  }
}

/// Returns the first value that is given to the function which `begin` gets. Throws ``Overdue`` after a minute.
public func awaitCall<Value: Sendable>(
  with type: Value.Type = Value.self, isolation: isolated (any Actor)? = #isolation,
  file: StaticString = #fileID, line: Int = #line, _ begin: (@escaping (Value) -> Void) -> Void
) async throws -> Value {
  let (stream, continuation) = AsyncStream.makeStream(of: Value.self)
  begin { continuation.yield($0) }
  let watch = Task {
    try await Task.sleep(for: .seconds(60))
    continuation.finish()
  }
  defer { watch.cancel() }
  for await value in stream { return value }
  throw Overdue(place: "\(file):\(line)")
}

/// Runs a call that blocks on a thread of its own: it holds up neither an actor nor a thread of the tasks for which it may
/// wait.
public func blocking<Value: Sendable, Failure>(
  _ call: @escaping @Sendable () throws(Failure) -> Value
) async throws(Failure) -> Value {
  let result = await withCheckedContinuation { done in
    Thread.detachNewThread { done.resume(returning: Result(catching: call)) }
  }
  return try result.get()
}
