import Jetstream
import JetstreamWebSocket

/// Reads the connections of a server and decodes their frames off the server's actor, then hands the messages to the
/// server there, or to the shard in whose channel they are.
///
/// A connection whose client sends more than its rates allow is left unread for a while: what it has sent stays in its
/// socket, whose buffers fill up, so that the client has to wait; see ``ClientTraffic``.
struct ServerPipe: Sendable {
  let server: HomeReference<Server>
  private let shards: ServerShards
  private let proxies: TrustedProxies
  private let gate = LargeMessageGate()
  /// The number of messages that the server handles without a break.
  static let partLimit = 1024

  init(_ server: HomeReference<Server>, _ shards: ServerShards, _ proxies: TrustedProxies) {
    (self.server, self.shards, self.proxies) = (server, shards, proxies)
  }

  /// Serves one connection until its end. Small frames are decoded on the thread that reads the connection, if it has one.
  @concurrent
  func run(_ connection: any ServerConnection, _ request: HTTPRequest) async {
    let request = proxies.resolve(request)
    await withTaskExecutorPreference(connection.taskExecutor) { await serve(connection, request) }
  }

  @concurrent
  private func serve(_ connection: any ServerConnection, _ request: HTTPRequest) async {
    // A task keeps all memory that it has ever needed at once. What opening needs goes with a task of its own, and a
    // connection on which nothing comes has 2.7 KB less.
    let opened = await Task { await open(connection, request) }.value
    guard let (id, pause) = opened, await rest(pause, on: id), await read(connection, on: id)
    else { return connection.abort() }
    await server.perform { $0.runner.closed(id) }
    for shard in shards.all { shard.perform { $0.closed(id) } }
  }

  /// Makes a connection known to the server. Returns its number and the time for which nothing is to be read from it; nil
  /// if it is not served.
  private func open(
    _ connection: any ServerConnection, _ request: HTTPRequest
  ) async -> (id: Int, pause: Duration)? {
    let opened = await server.perform { $0.opened(connection, request) }
    guard let (id, atOnce) = opened else { return nil }
    var admission = atOnce
    if admission == nil {
      // The client resumes a session, and the app has to say who it is. It may release the server before that.
      guard let decision = await server.perform({ $0.runner.admission(of: id) }) else { return nil }
      for await _ in decision {}
      admission = await server.perform { $0.runner.beginning(of: id) }
    }
    guard let (principal, channels, owed) = admission else { return nil }
    var pause = owed
    for channel in channels {
      await shards[channel]?.catchUp()
      pause = max(
        pause, await shards[channel]?.opened(connection, id, request, as: principal) ?? .zero)
    }
    return (id, pause)
  }

  /// Reads a connection to its end. Returns false if there is no server any more.
  private func read(_ connection: any ServerConnection, on id: Int) async -> Bool {
    do {
      while let inputs = try await connection.receive() {
        guard await take(inputs, on: id, of: connection) else { return false }
      }
    } catch {
      await tell("\(error)", .info, on: id)
    }
    return true
  }

  private func tell(_ text: String, _ level: Diagnostic.Level, on id: Int) async {
    await server.perform {
      $0.onDiagnostic.fire(Diagnostic(level, .connection, connection: id, text))
    }
  }

  /// Handles what was received at once: one step of the server's actor does for all of it, unless that is a lot. Returns
  /// false if there is no server any more.
  ///
  /// Not inlined: ``read(_:on:)`` would keep the memory for its variables while it waits.
  @inline(never)
  private func take(
    _ inputs: [ServerInput], on id: Int, of connection: any ServerConnection
  ) async -> Bool {
    var batch = Batch()
    func rest(_ pause: Duration?) async -> Bool { await self.rest(pause, on: id) }
    func add(_ part: ServerEngine.Frame, _ channel: Int) async -> Bool {
      if batch.channel != channel || batch.count + part.count > Self.partLimit {
        guard await rest(hand(&batch, on: id, of: connection)) else { return false }
      }
      batch.channel = channel
      batch.add(.frame(part))
      return true
    }
    for input in inputs {
      switch input {
      case .probed: batch.add(.probed)
      case .binaryFrame:
        connection.beginClose(
          code: Int(WebSocketCloseCode.unsupportedData.rawValue),
          reason: "the protocol has text frames only")
        guard await rest(hand(&batch, on: id, of: connection)) else { return false }
        await tell("closed after a binary frame", .warning, on: id)
      case .frame(let bytes) where bytes.count > LargeMessageGate.threshold:
        guard await rest(hand(&batch, on: id, of: connection)) else { return false }
        await gate.enter()
        let pause = await takeLarge(bytes, on: id, of: connection)
        await gate.leave()
        // Behind the gate, where it holds up no other connection.
        guard await rest(pause) else { return false }
      case .frame(let bytes):
        let (channel, frame) = Self.frame(of: bytes)
        // Mostly it has a single part, which needs no list.
        if frame.count <= Self.partLimit {
          guard await add(frame, channel) else { return false }
        } else {
          for part in Self.parts(of: frame) {
            guard await add(part, channel) else { return false }
          }
        }
      }
    }
    return await rest(hand(&batch, on: id, of: connection))
  }

  /// The longest time for which a connection is left unread without a look at whether it is still open.
  private static let longestRest = Duration.seconds(5)

  /// Leaves a connection unread for a while. Returns false if there is no server any more.
  private func rest(_ pause: Duration?, on id: Int) async -> Bool {
    guard var pause else { return false }
    while pause > .zero {
      try? await Task.sleep(for: min(pause, Self.longestRest))
      pause -= Self.longestRest
      let isOver = pause <= .zero
      let answer = await server.perform { $0.runner.rests(on: id, isOver: isOver) }
      guard let answer else { return false }
      // Nil if it is not open any more.
      guard var more = answer else { return true }
      // Nothing is read of the other channels, either.
      for shard in shards.all { more = max(more, await shard.rests(on: id, isOver: isOver)) }
      pause = max(pause, more)
    }
    return true
  }

  /// Decodes a large frame where that holds up no other connection. Returns the time for which nothing more is to be
  /// read; nil if there is no server any more.
  private func takeLarge(
    _ bytes: [UInt8], on id: Int, of connection: any ServerConnection
  ) async -> Duration? {
    var pause = Duration.zero
    let (channel, parts) = await withTaskExecutorPreference(globalConcurrentExecutor) {
      await Self.partsOfLarge(bytes)
    }
    for part in parts {
      var batch = Batch(channel: channel)
      batch.add(.frame(part))
      guard let more = await hand(&batch, on: id, of: connection) else { return nil }
      // The rates owe what the earlier parts have cost: the last part knows it.
      pause = max(pause, more)
    }
    // Change sets that are being judged are still in memory.
    if channel == 0 {
      await server.perform { await $0.runner.waitForRoom() }
    } else {
      await shards[channel]?.waitForRoom()
    }
    return pause
  }

  @concurrent
  private static func partsOfLarge(
    _ bytes: [UInt8]
  ) async -> (channel: Int, parts: [ServerEngine.Frame]) {
    assert(EventLoop.current == nil, "A large frame must not hold up the sockets of a loop.")
    let (channel, frame) = frame(of: bytes)
    var parts = parts(of: frame)
    for at in parts.indices {
      guard case .success(var messages) = parts[at].messages else { continue }
      for place in messages.indices {
        guard case .success(.scopeSync(var sync)) = messages[place] else { continue }
        sync.writeText()
        messages[place] = .success(.scopeSync(sync))
      }
      parts[at].messages = .success(messages)
    }
    return (channel, parts)
  }

  /// Decodes a frame, and returns its channel with it.
  private static func frame(of bytes: [UInt8]) -> (channel: Int, frame: ServerEngine.Frame) {
    let received = MessageFrame(bytes)
    let frame = ServerEngine.Frame(
      messages: received.messages, isArray: Message.isArrayFrame(bytes), size: bytes.count)
    return (received.channel, frame)
  }

  /// Returns a frame of many messages in parts, in order: other connections get their turn between two of them.
  private static func parts(of frame: ServerEngine.Frame) -> [ServerEngine.Frame] {
    guard case .success(let messages) = frame.messages, messages.count > partLimit else {
      return [frame]
    }
    let ordered = ServerEngine.inOrder(messages)
    return stride(from: 0, to: ordered.count, by: partLimit).map { start in
      let end = min(start + partLimit, ordered.count)
      let isLast = end == ordered.count
      return ServerEngine.Frame(
        messages: .success(Array(ordered[start..<end])), isArray: true,
        size: isLast ? frame.size : 0, endsFrame: isLast)
    }
  }

  /// Hands over a batch, and begins another one. Returns the time for which nothing more is to be read; nil if there
  /// is no server any more.
  private func hand(
    _ batch: inout Batch, on id: Int, of connection: any ServerConnection
  ) async -> Duration? {
    if batch.inputs.isEmpty { return .zero }
    let (inputs, channel) = (batch.inputs, batch.channel)
    batch = Batch()
    if channel == 0 {
      return await server.perform { $0.runner.received(inputs, on: id) ?? .zero }
    }
    if let pause = await shards[channel]?.received(inputs, on: id) { return pause }
    connection.beginClose(
      code: Int(WebSocketCloseCode.invalidPayload.rawValue),
      reason: "the session has no channel \(channel)")
    return .zero
  }

  /// The inputs that are handed over in one step.
  private struct Batch {
    /// The channel of the frames among them.
    var channel = 0
    private(set) var inputs: [ServerEngine.Input] = []
    /// The number of messages in them.
    private(set) var count = 0

    mutating func add(_ input: ServerEngine.Input) {
      inputs.append(input)
      if case .frame(let frame) = input { count += frame.count }
    }
  }
}
