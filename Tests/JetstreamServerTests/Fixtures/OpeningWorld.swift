import Foundation
import Jetstream
import JetstreamServer
import Testing

/// An engine that opens scopes when they are fetched, whose openings and closings end when a test says so.
final class OpeningWorld {
  private(set) var engine: ServerEngine!
  /// The steps that were not taken yet, as text.
  private var steps: [String] = []
  private var sent: [Int: [Message]] = [:]
  private(set) var closed: [Int: String] = [:]
  private var numbers: [Int: Int] = [:]
  /// The schemas with which scopes are to be opened.
  private(set) var schemas: [String: JSONValue?] = [:]
  private(set) var now: Duration = .zero
  /// The highest index of a message that was sent.
  private(set) var lastIndex = 0
  private var tokens = 0
  /// The largest number of scopes that may be open.
  private let limit: Int

  init(
    limit: Int = 2, idle: Duration = .seconds(60), stateBytes: Int = 256 << 10,
    access: ScopeAccess? = nil, limits: ServerLimits = .init(), keptMessages: Int = 10_000
  ) {
    self.limit = limit
    var configuration = ServerEngine.Configuration()
    configuration.limits = limits
    configuration.keptLimit.messages = keptMessages
    configuration.stateBytes = stateBytes
    configuration.openScopes = .init(count: limit, idleTime: idle, openingTime: .seconds(30))
    var hooks = ServerEngine.Hooks(
      fetch: { _, _, _ in .failure(.notThere("no scope is hosted")) },
      makeToken: { [unowned self] in
        tokens += 1
        return "token\(tokens)"
      }, random: { 0.5 })
    hooks.opens = { _ in true }
    if let access { hooks.access = { _, _, _ in .decided(.success(access)) } }
    engine = ServerEngine(configuration: configuration, hooks: hooks) { [unowned self] action in
      switch action {
      case .send(let ids, let frame):
        for case .success(let message) in MessageFrame(frame).messages.successes {
          lastIndex = max(lastIndex, message.index)
          for id in ids { sent[id, default: []].append(message) }
        }
      case .close(let id, _, let reason): closed[id] = reason
      case .scope(.open(let name, let schema)):
        steps.append("open \(name)")
        schemas[name] = schema
      case .scope(.giveUp(let name)): steps.append("give up \(name)")
      case .scope(.close(let name, _)): steps.append("close \(name)")
      case .encode(let scope, let fragments):
        engine.encoded(FragmentsText(fragments), of: scope, now: now)
      case .judge: engine.judge(now: now)
      case .admit, .probe, .join: break
      }
    }
  }

  func takeSteps() -> [String] {
    defer { steps = [] }
    return steps
  }

  /// Creates a session on a connection.
  func connect(_ id: Int, version: Int = 2) {
    engine.opened(id, params: [:], now: now)
    let spoken = version > 1 ? #""protocol":\#(version),"# : ""
    receive(
      #"{"type":"SessionCreate","index":0,"version":"0.2.0",\#(spoken)"params":{}}"#, on: id)
    _ = take(id)
  }

  func resume(_ id: Int, token: Int) {
    engine.opened(id, params: ["sessiontoken": "token\(token)"], now: now)
    numbers[id] = numbers[token]
    receive(#"{"type":"Ping","index":0,"ack":0,"resendMissing":true}"#, on: id)
  }

  func disconnect(_ id: Int) { engine.closed(id, now: now) }

  func receive(_ text: String, on id: Int, endsFrame: Bool = true) {
    let frame = Array(text.utf8)
    let read = MessageFrame(frame)
    let part = ServerEngine.Frame(
      messages: read.messages, isArray: text.hasPrefix("["), endsFrame: endsFrame)
    engine.received([.frame(part)], on: id, now: now)
    check()
  }

  func send(_ message: Message, on id: Int, endsFrame: Bool = true) {
    numbers[id, default: 0] += 1
    var message = message
    message.index = numbers[id]!
    receive(
      String(decoding: Message.encodeFrame([message], asArray: false), as: UTF8.self), on: id,
      endsFrame: endsFrame)
  }

  func fetch(_ name: String, on id: Int, schema: JSONValue? = nil) {
    var fetch = ScopeFetch(name: name)
    fetch.schema = schema
    send(.scopeFetch(fetch), on: id)
  }

  /// Ends an opening with a new scope of the server, hosted already.
  ///
  /// - Parameter isStored: true to host it with a log that never says that something is durable.
  func open(_ name: String, isStored: Bool = false) -> Scope {
    let scope = Scope(name: name, root: Canvas(), ticker: .manual())
    if isStored {
      #expect(throws: Never.self) { try engine.host(scope, history: nil) { _ in } }
    } else {
      engine.host(scope)
    }
    engine.opened(name, .success(scope), now: now)
    check()
    return scope
  }

  func fail(_ name: String, _ error: WireError) {
    engine.opened(name, .failure(error), now: now)
    check()
  }

  func close(_ name: String) {
    engine.closed(name, now: now)
    check()
  }

  func pass(_ time: Duration) {
    now += time
    engine.advance(to: now)
    check()
  }

  /// Returns the answers that a connection was sent since the last call: the index of a scope, or the type of an error.
  func take(_ id: Int) -> [String] {
    let messages = sent.removeValue(forKey: id) ?? []
    return messages.compactMap { message in
      switch message {
      case .scopeFetchReply(let reply):
        switch reply.answer {
        case .granted: "granted"
        case .denied(let error): error.type ?? error.message
        case .moved: "moved"
        }
      case .scopeSyncReply: "answered"
      case .scopeLeave(let leave): "left: \(leave.error?.type ?? "")"
      default: nil
      }
    }
  }

  private func check() {
    let problems = engine.checkInvariants()
    #expect(problems.isEmpty, "\(problems)")
    #expect(engine.openScopeCount <= limit)
  }
}

extension Result where Success == [Result<Message, MessageError>] {
  fileprivate var successes: [Result<Message, MessageError>] { (try? get()) ?? [] }
}
