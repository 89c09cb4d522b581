import Foundation
import Jetstream

/// A room that the user has joined: its scope, and the live queries that the terminal shows.
@MainActor
final class JoinedRoom {
  let name: String
  let scope: Scope
  let room: Room
  private let history: UndoHistory
  /// The newest messages that the server has, the newest one first.
  let newest: LiveQuery<Message>
  /// The messages that the server has not stamped yet.
  let unsent: LiveQuery<Message>
  /// The number of messages of others that came after the last one that was read.
  let unread: LiveValue<Int>
  /// The result of a search; nil without one.
  private(set) var found: LiveQuery<Message>?

  init(
    _ name: String, _ room: Room, in scope: Scope, _ history: UndoHistory, of profile: Profile,
    user: String
  ) {
    self.name = name
    self.room = room
    self.scope = scope
    self.history = history
    let sent = room.query(\.messages).filter { $0.date != nil }
    newest = sent.sorted(by: \.date, order: .reverse).limit(20).live()
    unsent = room.query(\.messages).filter { $0.date == nil }.live()
    unread =
      sent
      .filter { $0.author != user && $0.date! > profile.lastRead[name, default: .distantPast] }
      .count()
  }

  /// Shows only messages with this text in them; all messages if it is empty.
  func search(_ text: String) {
    found =
      text.isEmpty
      ? nil
      : room.query(\.messages).filter { $0.text.text.localizedCaseInsensitiveContains(text) }
        .sorted(by: \.date, order: .reverse).limit(20).live()
  }

  /// Takes back the last change that the user has made in the room on this machine, now or in an earlier process. Returns
  /// false if nothing has changed, because there was none, or because others have overwritten it.
  func undo() -> Bool {
    scope.flush()
    var hasChanged = false
    let token = scope.onChanges.listen { _ in hasChanged = true }
    defer { token.cancel() }
    history.undo()
    scope.flush()
    return hasChanged
  }

  /// The conflicts that the server's refusal has left, the oldest first.
  var refused: [(conflict: Conflict, reason: String)] {
    scope.conflicts.items.compactMap {
      if case .rejected(let error) = $0.reason { ($0, error.message) } else { nil }
    }
  }
}

/// The client of one user. It works from its logs, and syncs them whenever there is a server.
@MainActor
final class ChatClient {
  let user: String
  let lobby = Lobby()
  let profile = Profile()
  private(set) var rooms: [String: JoinedRoom] = [:]
  private(set) var current: JoinedRoom!
  /// Called when there may be something new to show.
  var onChange: () -> Void = {}
  /// The reason for which the server does not let the user in, or has put the user out; nil while it does.
  private(set) var refusal: String?
  private let folder: String
  private let client: Client
  private var logs: [FragmentLog] = []

  init(user: String, room: String, server: String, folder: String) throws {
    self.user = user
    self.folder = folder
    client = Client(url: server, backoff: Backoff(limit: .seconds(2)))
    try sync(Scope(name: "lobby", root: lobby))
    try sync(Scope(name: "user/\(user)", root: profile))
    try join(room)
    try joinAll()
    lobby.observeTreeChange(self) { me in me.onChange() }
    profile.observeChange(self, \.lastRead) { me in
      try? me.joinAll()  // Another device of this user may have joined a room.
      me.onChange()
    }
    client.onSyncStateChange.listen(self) { me, _ in me.onChange() }
    client.onStatusChange.listen(self) { me, _ in me.onChange() }
    client.onSessionDenied.listen(self) { me, error in me.refused(error) }
  }

  /// Begins to connect, and goes on in the background for as long as there is this client, unless the server refuses the
  /// user. The rooms keep what is pending then, and another call tries again.
  func connect() throws {
    let key = try key()
    client.credentials = { [user] _ in
      Credentials(params: ["name": .string(user), "key": .string(key)])
    }
    Task {
      do {
        try await client.connect()
        refusal = nil
      } catch {
        refused(error)
      }
      onChange()
    }
  }

  /// Ends the client. What was typed last is in the logs then, and is sent at the next start.
  func close() async throws {
    client.close()
    for log in logs { try await log.close() }
  }

  private func refused(_ error: any Error) {
    if case .sessionDenied(let reason)? = error as? SyncError {
      refusal = reason
    } else {
      refusal = "\(error)"
    }
    onChange()
  }

  /// Shows a room, which is joined if it was not yet. The server makes it if there was none.
  func join(_ name: String) throws {
    current = try open(name)
    if profile.lastRead[name] == nil { profile.lastRead[name] = Date(timeIntervalSince1970: 0) }
  }

  private func joinAll() throws {
    for name in profile.lastRead.keys.sorted() where isName(name) { _ = try open(name) }
  }

  private func open(_ name: String) throws -> JoinedRoom {
    if let room = rooms[name] { return room }
    let room = Room()
    let scope = Scope(name: "room/\(name)", root: room)
    let history = try UndoHistory(of: scope, log: sync(scope).reader)
    let joined = JoinedRoom(name, room, in: scope, history, of: profile, user: user)
    rooms[name] = joined
    joined.room.observeTreeChange(self) { me in me.onChange() }
    joined.scope.conflicts.onAdd.listen(self) { me, _ in me.onChange() }
    joined.scope.conflicts.onRemove.listen(self) { me, _ in me.onChange() }
    return joined
  }

  @discardableResult
  private func sync(_ scope: Scope) throws -> FragmentLog {
    let log = try FragmentLog("\(folder)/\(scope.name)")
    try client.fetch(scope, log: log)
    logs.append(log)
    return log
  }

  /// The secret by which the server knows this user again, made when it is first needed.
  private func key() throws -> String {
    let file = URL(filePath: "\(folder)/key")
    if let key = try? String(contentsOf: file, encoding: .utf8) { return key }
    let key = UUID().uuidString
    try key.write(to: file, atomically: true, encoding: .utf8)
    return key
  }

  // MARK: What the terminal shows

  var connection: String {
    switch client.status {
    case .online: "online"
    case .connecting: "connecting"
    case .offline, .waiting, .resting: "offline"
    }
  }

  /// The number of change sets in all rooms that the server has not decided.
  var pendingCount: Int {
    rooms.values.reduce(0) { $0 + (client.syncState(of: $1.scope)?.pendingCount ?? 0) }
  }

  func isPending(_ message: Message) -> Bool { client.isPending(message) }

  /// Notes that the user sees the newest messages of the current room.
  func markAsRead() {
    guard let newest = current.newest.rows.first?.date else { return }
    if newest > profile.lastRead[current.name, default: .distantPast] {
      profile.lastRead[current.name] = newest
    }
  }

  // MARK: What the user does

  func post(_ text: String) {
    let message = Message()
    message.text = MessageText(text)
    message.author = user
    current.room.messages.append(message)
  }

  // The server decides whose messages a user may change. What it refuses is taken back here, with its reason.
  func edit(_ message: Message, _ text: String) { message.text = MessageText(text) }

  func delete(_ message: Message) { current.room.messages.remove(message) }

  func react(to message: Message, by number: Int) { message.score += number }

  /// Likes a message, or no longer likes it.
  func like(_ message: Message) {
    if message.likes.remove(user) == nil { message.likes.insert(user) }
  }

  func retry(_ conflict: Conflict) { current.scope.retry([conflict]) }

  func discard(_ conflict: Conflict) { current.scope.conflicts.discard(conflict.id) }
}
