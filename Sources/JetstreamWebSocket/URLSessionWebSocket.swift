#if canImport(Darwin)
import Foundation
import Synchronization

/// A client WebSocket over Foundation's `URLSession`, which brings TLS and the system's proxies.
///
/// It serves `wss://`, which the module's own sockets do not. The system answers pings and checks frames. Messages are
/// read from it one at a time, on demand.
public final class URLSessionWebSocket: WebSocketChannel {
  private struct State {
    var status: WebSocketCloseStatus?
    var isClosing = false
    var buffered = 0
    var room = OutboundRoom()
    var closeWaiters: [CheckedContinuation<Void, Never>] = []
  }

  private let session: URLSession
  private let task: URLSessionWebSocketTask
  private let observer: Observer
  private let configuration: WebSocketConfiguration
  private let state = Mutex(State())

  private init(
    session: URLSession, task: URLSessionWebSocketTask, observer: Observer,
    configuration: WebSocketConfiguration
  ) {
    self.session = session
    self.task = task
    self.observer = observer
    self.configuration = configuration
  }

  deinit {
    task.cancel()
    session.invalidateAndCancel()
  }

  /// Connects to a `ws://` or `wss://` address and waits for the handshake.
  ///
  /// Throws ``WebSocketError/invalidURL(problem:)`` or ``WebSocketError/invalidHeader(name:)`` before anything is sent,
  /// ``WebSocketError/handshakeRefused(status:retryAfter:)`` when the server refuses, ``WebSocketError/connectionLost``
  /// for other failures to connect, ``WebSocketError/timedOut`` and ``WebSocketError/cancelled``.
  public static func connect(
    to url: String, headers: [(String, String)] = [],
    configuration: WebSocketClient.Configuration = .init()
  ) async throws(WebSocketError) -> URLSessionWebSocket {
    // The checks of the module's own client hold here too; the request it builds is not used.
    _ = try ClientHandshake(
      url: try WebSocketURL(url), headers: headers, subprotocols: configuration.subprotocols,
      key: "")
    guard let address = URL(string: url) else {
      throw .invalidURL(problem: "The system cannot read the address.")
    }
    var request = URLRequest(url: address)
    for (name, value) in headers { request.addValue(value, forHTTPHeaderField: name) }
    if !configuration.subprotocols.isEmpty {
      request.setValue(
        configuration.subprotocols.joined(separator: ", "),
        forHTTPHeaderField: "Sec-WebSocket-Protocol")
    }
    // This limits the time without a byte, and that for connecting only if none comes; see `OpeningRace`.
    let (seconds, attoseconds) = configuration.connectTimeout.components
    request.timeoutInterval = Double(seconds) + Double(attoseconds) * 1e-18

    let observer = Observer()
    let session = URLSession(
      configuration: .ephemeral, delegate: observer, delegateQueue: nil)
    let task = session.webSocketTask(with: request)
    task.maximumMessageSize = configuration.connection.limits.maximumMessageBytes
    let socket = URLSessionWebSocket(
      session: session, task: task, observer: observer, configuration: configuration.connection)
    observer.socket.withLock { $0.value = socket }
    task.resume()
    try await observer.opening.outcome(within: configuration.connectTimeout) { task.cancel() }
      .get()
    return socket
  }

  /// Returns the next message; see ``WebSocketChannel/receive()``. Cancelling the waiting task ends the connection,
  /// since the system cannot cancel a single read.
  public func receive() async throws(WebSocketError) -> WebSocketMessage? {
    do {
      switch try await task.receive() {
      case .string(let text): return .text(text)
      case .data(let data): return .binary(Array(data))
      @unknown default: throw WebSocketError.connectionLost
      }
    } catch {
      if Task.isCancelled { throw .cancelled }
      if task.closeCode != .invalid {
        ended(code: task.closeCode.rawValue, reason: task.closeReason)
        return nil
      }
      ended(code: nil, reason: nil)
      if closeStatus?.code == .abnormal { throw .connectionLost }
      return nil
    }
  }

  /// Queues a message; see ``WebSocketChannel/send(_:)``. The system copies the message.
  public func send(_ message: WebSocketMessage) throws(WebSocketError) {
    let count = message.bytes.count
    let error: WebSocketError? = state.withLock { state in
      guard !state.isClosing, state.status == nil else { return .closed }
      let limit = configuration.maximumOutboundBytes
      guard state.room.admits(count, beside: state.buffered, upTo: limit) else {
        return .outboundQueueFull
      }
      state.buffered += count
      return nil
    }
    if let error {
      if error == .outboundQueueFull { dropSlowConsumer() }
      throw error
    }
    let content: URLSessionWebSocketTask.Message =
      message.text.map { .string($0) } ?? .data(Data(message.bytes))
    task.send(content) { [weak self] _ in
      self?.state.withLock { $0.buffered -= count }
    }
  }

  private func dropSlowConsumer() {
    switch configuration.slowConsumerPolicy {
    case .keep: break
    case .close: beginClose(code: .policyViolation, reason: "")
    case .abort: abort()
    }
  }

  /// Starts the close handshake; see ``WebSocketChannel/beginClose(code:reason:)``.
  public func beginClose(code: WebSocketCloseCode, reason: String) {
    precondition(code.isAllowedOnWire, "The close code \(code) must not be sent.")
    let isFirst = state.withLock { state in
      guard !state.isClosing, state.status == nil else { return false }
      state.isClosing = true
      return true
    }
    guard isFirst else { return }
    let reason = WebSocketCloseStatus.fitting(reason)
    // Codes of the application are not cases of the system's enumeration, but it is imported from
    // C and open, so that any raw value is one of its values.
    let systemCode = URLSessionWebSocketTask.CloseCode(rawValue: Int(code.rawValue))
    task.cancel(with: systemCode ?? .normalClosure, reason: Data(reason.utf8))
    finish(WebSocketCloseStatus(code: code, reason: reason))
  }

  /// Closes the connection; see ``WebSocketChannel/close(code:reason:)``. The system does not report the peer's answer,
  /// so this returns once the close frame is on its way.
  public func close(code: WebSocketCloseCode, reason: String) async {
    beginClose(code: code, reason: reason)
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let isOver = state.withLock { state in
        if state.status == nil { state.closeWaiters.append(continuation) }
        return state.status != nil
      }
      if isOver { continuation.resume() }
    }
  }

  /// Drops the connection at once; see ``WebSocketChannel/abort()``.
  public func abort() {
    task.cancel()
    finish(WebSocketCloseStatus(code: .abnormal))
  }

  /// The outcome of the connection; see ``WebSocketChannel/closeStatus``.
  public var closeStatus: WebSocketCloseStatus? { state.withLock { $0.status } }

  /// The number of bytes that wait to be sent; see ``WebSocketChannel/bufferedBytes``. Headers are not counted.
  public var bufferedBytes: Int { state.withLock { $0.buffered } }

  fileprivate func ended(code: Int?, reason: Data?) {
    let text = reason.map { String(decoding: $0, as: UTF8.self) } ?? ""
    let status = code.flatMap { UInt16(exactly: $0) }.map {
      WebSocketCloseStatus(code: .init(rawValue: $0), reason: text, byPeer: true)
    }
    finish(status ?? WebSocketCloseStatus(code: .abnormal))
  }

  private func finish(_ status: WebSocketCloseStatus) {
    let waiters: [CheckedContinuation<Void, Never>] = state.withLock { state in
      if state.status == nil { state.status = status }
      defer { state.closeWaiters = [] }
      return state.closeWaiters
    }
    for waiter in waiters { waiter.resume() }
    session.finishTasksAndInvalidate()
  }
}

/// Receives the system's callbacks about the handshake and the end of the connection.
private final class Observer: NSObject, URLSessionWebSocketDelegate {
  struct WeakSocket { weak var value: URLSessionWebSocket? }

  let socket = Mutex(WeakSocket())
  let opening = OpeningRace()

  func urlSession(
    _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
    didOpenWithProtocol protocol: String?
  ) {
    opening.settle(.success(()))
  }

  func urlSession(
    _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
    didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
  ) {
    socket.withLock { $0.value }?.ended(code: closeCode.rawValue, reason: reason)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
  ) {
    if let response = task.response as? HTTPURLResponse, response.statusCode != 101 {
      let header = response.value(forHTTPHeaderField: "Retry-After").map { [("Retry-After", $0)] }
      let pause = RetryAfter.duration(in: HTTPHeaders(header ?? []), now: Date())
      opening.settle(.failure(.handshakeRefused(status: response.statusCode, retryAfter: pause)))
    } else if (error as? URLError)?.code == .timedOut {
      opening.settle(.failure(.timedOut))
    } else {
      opening.settle(.failure(.connectionLost))
    }
    socket.withLock { $0.value }?.ended(code: nil, reason: nil)
  }
}
#endif
