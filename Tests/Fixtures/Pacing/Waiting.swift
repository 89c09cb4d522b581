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
  let clock = ContinuousClock()
  let end = clock.now + .seconds(60)
  while try !condition() {
    guard clock.now < end else { throw Overdue(place: "\(file):\(line)") }
    await Task.yield()
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
