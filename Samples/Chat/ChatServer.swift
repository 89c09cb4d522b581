import Foundation
import Jetstream
import JetstreamServer

/// Users and the keys by which they are known again. No client gets this scope.
final class Accounts: ModelObject {
  @Property var keys: [String: String] = [:]
  /// The reasons for which users are blocked, by their names.
  @Property var blocked: [String: String] = [:]
}

/// The server: makes rooms on demand, keeps each in a log of its own, and decides about users and their rights.
@MainActor
final class ChatServer {
  private let folder: String
  private let moderators: Set<String>
  private let server: Server
  private let lobby = Lobby()
  private let accounts = Accounts()
  private let accountScope: Scope
  private var accountLog: FragmentLog!
  /// The scopes that clients can fetch, by name, and the names of those that are being read from disk.
  private var hosted: [String: Scope] = [:]
  private var opening: Set<String> = []

  init(folder: String, moderators: Set<String> = []) {
    HouseRules.enforce()
    (self.folder, self.moderators) = (folder, moderators)
    var configuration = Server.Configuration()
    configuration.rules = { $0.hasPrefix("room/") ? RoomRules.all : nil }
    configuration.sessionExpiry = .seconds(25)  // Users that have gone leave the lobby after that.
    server = Server(configuration: configuration)
    accountScope = Scope(name: "accounts", root: accounts)
  }

  /// Reads the logs and begins to listen. Returns the port.
  func start(port: UInt16) async throws -> UInt16 {
    // A scope that is not hosted can be kept on disk all the same.
    accountLog = try FragmentLog("\(folder)/\(accountScope.name)")
    try await accountLog.restore(into: accountScope)
    accountLog.record(accountScope) { Terminal.say("note: accounts: \($0)") }
    try await host(Scope(name: "lobby", root: lobby))
    lobby.people = []
    server.authenticate = { [unowned self] in try authenticate($0) }
    server.access = { [unowned self] in try access(of: $0, to: $1) }
    server.resolveScope = { [unowned self] _, name, _ in resolve(name) }
    server.onSessionEnd.listen(self) { me, _ in me.showPeople() }
    server.onDiagnostic.listen {
      if $0.level >= .warning { Terminal.say("note: \($0)") }
    }
    do {
      return try await server.listen(port: port)
    } catch {
      if case .bindFailed(EADDRINUSE) = error {
        throw Problem("port \(port) is taken; choose another one with --port")
      }
      throw Problem("it cannot listen on port \(port): \(error)")
    }
  }

  private func host(_ scope: Scope) async throws {
    try await server.host(scope, log: FragmentLog("\(folder)/\(scope.name)"))
    hosted[scope.name] = scope
  }

  // MARK: Users

  /// Lets a user in. The first one who comes with a name has it, and shows the same key from then on.
  private func authenticate(_ session: SessionInfo) throws -> Principal {
    guard case .object(let params) = session.params, case .string(let name)? = params["name"],
      case .string(let key)? = params["key"], isName(name)
    else { throw WireError.rejected("A name has up to 20 small letters, digits and hyphens") }
    guard accounts.keys[name, default: key] == key else {
      throw WireError.notYou("The name \(name) belongs to another user")
    }
    if let refusal = refusal(of: name) { throw refusal }
    accounts.keys[name] = key
    return Principal(name, claims: moderators.contains(name) ? ["role": "moderator"] : [:])
  }

  /// Returns the rights of a session in the scope that it fetches.
  private func access(of session: SessionInfo, to scope: String) throws -> ScopeAccess {
    let name = session.principal?.id ?? ""
    if let refusal = refusal(of: name) { throw refusal }
    if scope.hasPrefix("user/"), scope != "user/\(name)" {
      throw WireError.notYou("This belongs to another user")
    }
    showPeople()
    return scope == "lobby" ? .readOnly : .readWrite
  }

  private func showPeople() {
    let people = Set(server.sessions.compactMap(\.principal?.id))
    for name in people.subtracting(lobby.people).sorted() { Terminal.say("\(name) is here") }
    for name in lobby.people.subtracting(people).sorted() { Terminal.say("\(name) has gone") }
    lobby.people = people
  }

  // MARK: Blocked users

  /// Does what the operator has typed.
  func perform(_ line: String) async {
    let words = line.split(separator: " ", maxSplits: 2).map(String.init)
    switch words.first {
    case "block" where words.count > 1 && isName(words[1]):
      await block(words[1], because: words.count == 3 ? words[2] : "")
    case "unblock" where words.count == 2 && isName(words[1]):
      await unblock(words[1])
    case nil: break
    default: Terminal.say("The commands are: block NAME [REASON], unblock NAME")
    }
  }

  /// Puts a user out at once, and refuses the user from now on, also after a restart.
  private func block(_ name: String, because reason: String) async {
    accounts.blocked[name] = reason
    if let refusal = refusal(of: name) { server.revoke(name, telling: refusal) }
    await saveAccounts("\(name) is blocked")
  }

  private func unblock(_ name: String) async {
    accounts.blocked[name] = nil
    await saveAccounts("\(name) is not blocked")
  }

  /// Says a sentence when the accounts are on the disk as they are now.
  private func saveAccounts(_ sentence: String) async {
    accountScope.flush()
    do {
      try await accountLog.sync()
      Terminal.say(sentence)
    } catch {
      Terminal.say("note: \(sentence), but not after a restart: \(error)")
    }
  }

  /// Returns the error for a user that is blocked; nil for all others. A client that gets it asks its app for other
  /// credentials, and stops if the server refuses these, too. What is pending is kept.
  private func refusal(of name: String) -> WireError? {
    accounts.blocked[name].map { .notYou("You are blocked" + ($0.isEmpty ? "" : ": \($0)")) }
  }

  // MARK: Rooms

  /// Returns the scope with a name; one that is not hosted yet is opened, and the client asks again.
  private func resolve(_ name: String) -> Result<Scope, WireError> {
    if let scope = hosted[name] { return .success(scope) }
    let parts = name.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0] == "room" || parts[0] == "user", isName(parts[1]) else {
      return .failure(.notThere("There is no \(name)"))
    }
    if opening.insert(name).inserted { Task { await open(name) } }
    return .failure(.notNow("It is being opened", retryAfter: .milliseconds(100)))
  }

  /// Hosts a room or a profile with what its log has of it.
  private func open(_ name: String) async {
    defer { opening.remove(name) }
    let root: ModelObject = name.hasPrefix("room/") ? Room() : Profile()
    let scope = Scope(name: name, root: root)
    do {
      try await host(scope)
    } catch {
      return Terminal.say("note: \(name) cannot be opened: \(error)")
    }
    guard let room = root as? Room else { return }
    // The last server may have been killed before it could stamp the newest ones.
    for message in room.messages { stamp(message) }
    scope.onRemoteChanges.listen(self) { [unowned scope] me, changes in
      for fragment in changes.fragments { me.stamp(scope.model(fragment.uuid)) }
    }
    lobby.rooms.insert(String(name.dropFirst("room/".count)))
    Terminal.say("\(name) is open; messages: \(room.messages.count)")
  }

  /// Writes the time of arrival on a message that has none.
  private func stamp(_ model: ModelObject?) {
    if let message = model as? Message, message.date == nil { message.date = Date() }
  }
}
