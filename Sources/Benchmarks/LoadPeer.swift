import Foundation
import Jetstream
import JetstreamWebSocket

/// A peer that speaks version 2 of the protocol by hand. It looks for no more in what it is sent than it needs, so that the
/// load costs less than the server.
final class LoadPeer {
  private var connection: WebSocketConnection
  private let port: UInt16
  private var token = ""
  private var scopeIndex = 0
  /// The channel of the session in which the scope is.
  private var channel = 0
  private var room = 0
  private var models: [UUID] = []
  private var root = UUID()
  private var index = 0
  private var number = 0
  /// The last change set that was answered.
  private(set) var answered = 0
  private let client: UUID
  /// The highest index that came.
  private var received = 0
  /// The sequence of the last change set that came.
  private(set) var sequence = 0
  private var unacknowledged = 0

  init(_ port: UInt16, as client: UUID = UUID()) async throws {
    (self.port, self.client) = (port, client)
    connection = try await WebSocketClient.connect(to: "ws://127.0.0.1:\(port)")
  }

  /// Begins a session and fetches a scope, to the end of its state.
  func join(_ room: Int) async throws {
    try connection.send(
      text:
        #"{"type":"SessionCreate","index":0,"version":"0.2.0","protocol":2,"params":{},"client":""#
        + client.uuidString.lowercased() + #""}"#)
    try await fetch(room)
  }

  /// Fetches a scope, to the end of its state.
  func fetch(_ room: Int) async throws {
    self.room = room
    try ask()
    models = []
    while true {
      let bytes = try await nextFrame()
      if models.count >= 512 {
        received = max(received, Self.last(#""index":"#, in: bytes) ?? 0)
        let isPart = bytes.suffix(17).contains(#""more":true}]"#.utf8)
        try acknowledge()
        if isPart { continue } else { return }
      }
      for case .success(let message) in try Message.decodeFrame(bytes) {
        received = max(received, message.index)
        switch message {
        case .sessionCreateReply(let reply): token = reply.sessionToken ?? ""
        case .scopeFetchReply(let reply):
          if case .moved(let channel) = reply.answer {
            (self.channel, index, received) = (channel, 0, 0)
            try ask()
            continue
          }
          guard let granted = reply.scopeIndex else { throw RoleProblem(text: "\(reply.answer)") }
          scopeIndex = granted
          number = reply.standing?.decided ?? 0
          answered = number
          sequence = reply.standing?.position.sequence ?? 0
        case .scopeState(let state):
          root = state.rootUUID
          if models.count < 512 { models += state.fragments.dropFirst().prefix(512).map(\.uuid) }
          if state.more { try acknowledge() } else { return try acknowledge() }
        default: break
        }
      }
    }
  }

  private func ask() throws {
    index += 1
    try send(#"{"type":"ScopeFetch","index":\#(index),"name":"Room \#(room)","params":{}}"#)
  }

  /// Sends a message in the channel of the scope.
  private func send(_ message: String) throws {
    try connection.send(
      text: channel == 0 ? message : #"{"channel":\#(channel),"messages":[\#(message)]}"#)
  }

  private func nextFrame() async throws -> [UInt8] {
    guard let bytes = try await connection.receive()?.bytes else {
      let status = connection.closeStatus.map { "\($0)" } ?? "without a status"
      throw RoleProblem(text: "the server has closed a connection: \(status)")
    }
    return bytes
  }

  /// Sends a change set with a new value of a model.
  func edit(_ model: Int) throws {
    try write(models[model % models.count], "Shape", #""level":\#(number + 1)"#)
  }

  /// Sends a change set with a note of so many bytes.
  func edit(noteBytes: Int) throws {
    let note = String(repeating: "\(number % 10)", count: noteBytes)
    try write(root, "Canvas", "\"note\":\"\(note)\"")
  }

  private func write(_ model: UUID, _ className: String, _ property: String) throws {
    (index, number) = (index + 1, number + 1)
    let uuid = model.uuidString.lowercased()
    try send(
      #"{"type":"ScopeSync","index":\#(index),"scopeIndex":\#(scopeIndex),"#
        + #""fragments":[{"type":"change","uuid":"\#(uuid)","clsName":"\#(className)","#
        + #""properties":{\#(property)}}],"number":\#(number),"decided":\#(answered)}"#)
  }

  /// The number of change sets without an answer.
  var inFlight: Int { number - answered }

  /// Takes the next frame, and acknowledges now and then.
  func take() async throws {
    let bytes = try await nextFrame()
    // The server no longer has the change sets behind the last that this peer was sent.
    if try hasMissed(bytes) { return try await fetch(room) }
    sequence = Self.last(#""sequence":"#, in: bytes) ?? sequence
    received = max(received, Self.last(#""index":"#, in: bytes) ?? 0)
    // Each message since the fetch has had a change set, so that indices and numbers differ by a constant.
    if let reply = Self.last(#""replyTo":"#, in: bytes) {
      answered = max(answered, reply - (index - number))
    }
    unacknowledged += bytes.count
    if unacknowledged > 8 << 10 { try acknowledge() }
  }

  /// Returns true if a frame says that the scope's stream has come further than this peer was sent it.
  private func hasMissed(_ frame: [UInt8]) throws -> Bool {
    guard Self.last(#""told":"#, in: frame) != nil else { return false }
    var last = sequence
    for case .success(let message) in try Message.decodeFrame(frame) {
      switch message {
      case .scopeSync(let sync): last = sync.sequence ?? last
      case .ping(let ping):
        if let told = ping.told.first(where: { $0.scopeIndex == scopeIndex }) {
          return told.sequence > last
        }
      default: break
      }
    }
    return false
  }

  func acknowledge(resuming: Bool = false) throws {
    unacknowledged = 0
    try send(
      #"{"type":"Ping","index":0,"ack":\#(received),"resendMissing":\#(resuming),"#
        + #""seen":[{"scopeIndex":\#(scopeIndex),"sequence":\#(sequence)}]}"#)
  }

  func cut() { connection.abort() }

  /// Resumes the session on another connection.
  func resume() async throws {
    connection = try await WebSocketClient.connect(
      to: "ws://127.0.0.1:\(port)", headers: [("X-Jetstream-SessionToken", token)])
    try acknowledge(resuming: true)
  }

  /// Returns the number behind the last occurrence of a key. The end of a frame is near it.
  private static func last(_ key: StaticString, in bytes: [UInt8]) -> Int? {
    let count = key.utf8CodeUnitCount
    guard bytes.count > count else { return nil }
    return bytes.withUnsafeBufferPointer { bytes in
      var start = bytes.count - count
      while start >= 0 {
        if bytes[start] == 0x22, memcmp(bytes.baseAddress! + start, key.utf8Start, count) == 0 {
          return bytes[(start + count)...].prefix { (0x30...0x39).contains($0) }
            .reduce(0) { 10 * $0 + Int($1 - 0x30) }
        }
        start -= 1
      }
      return nil
    }
  }
}
