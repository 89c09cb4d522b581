import Foundation
import Jetstream
import JetstreamServer

/// Users and the keys by which they are known again. No client gets this scope.
final class Accounts: ModelObject {
  @Property var keys: [String: String] = [:]
}

/// The server: makes rooms on demand, keeps each in a log of its own, and says who wrote what.
@MainActor
final class ChatServer {
  private let folder: String
  private let server: Server
  private let lobby = Lobby()
  private let accounts = Accounts()
  private let accountScope: Scope
  /// The scopes that clients can fetch, by name, and the names of those that are being read from disk.
  private var hosted: [String: Scope] = [:]
  private var opening: Set<String> = []
  /// The users by the token of their session: a user may be here from several devices.
  private var sessions: [String: String] = [:]
  private var stamps: [UUID: Stamp] = [:]

  /// The parts of a message that clients cannot change.
  private struct Stamp {
    let author: String
    let date: Date
    let text: MessageText
  }

  init(folder: String) {
    HouseRules.enforce()
    self.folder = folder
    var configuration = Server.Configuration()
    configuration.sessionExpiry = .seconds(25)  // Users that have gone leave the lobby after that.
    server = Server(configuration: configuration)
    accountScope = Scope(name: "accounts", root: accounts)
  }

  /// Reads the logs and begins to listen. Returns the port.
  func start(port: UInt16) async throws -> UInt16 {
    // A scope that is not hosted can be kept on disk all the same.
    let log = try FragmentLog("\(folder)/\(accountScope.name)")
    try await log.restore(into: accountScope)
    log.record(accountScope) { Terminal.say("note: accounts: \($0)") }
    try await host(Scope(name: "lobby", root: lobby))
    lobby.people = []
    server.authenticate = { [unowned self] in try authenticate($0) }
    server.resolveScope = { [unowned self] session, name, _ in resolve(name, for: session) }
    server.onSessionEnd.listen(self) { me, session in
      me.sessions[session.token] = nil
      me.showPeople()
    }
    server.onDiagnostic.listen {
      if $0.level >= .warning { Terminal.say("note: \($0)") }
    }
    return try await server.listen(port: port)
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
    accounts.keys[name] = key
    sessions[session.token] = name
    showPeople()
    return Principal(name)
  }

  private func showPeople() {
    let people = Set(sessions.values)
    for name in people.subtracting(lobby.people).sorted() { Terminal.say("\(name) is here") }
    for name in lobby.people.subtracting(people).sorted() { Terminal.say("\(name) has gone") }
    lobby.people = people
  }

  // MARK: Rooms

  /// Returns the scope with a name; one that is not hosted yet is opened, and the client asks again.
  private func resolve(_ name: String, for session: SessionInfo) -> Result<Scope, WireError> {
    if name.hasPrefix("user/"), name != "user/\(session.principal?.id ?? "")" {
      return .failure(.notYou("This belongs to another user"))
    }
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
    for message in room.messages {
      var author = message.author
      if message.date == nil {
        // The last server was killed before it could stamp this one; the log has the author of each change set.
        let writes = try? LogReader("\(folder)/\(name)").writes(to: "text", of: message.uuid)
        author = writes?.first?.author ?? "unknown"
      }
      stamp(message, by: author, at: message.date)
    }
    scope.onRemoteChanges.listen(self) { [unowned scope] me, changes in
      me.check(changes, in: scope)
    }
    lobby.rooms.insert(String(name.dropFirst("room/".count)))
    Terminal.say("\(name) is open; messages: \(room.messages.count)")
  }

  /// Stamps the messages that a client has added, and takes back what a client has written on a stamped one.
  private func check(_ changes: RemoteChanges, in scope: Scope) {
    for fragment in changes.fragments {
      guard let message = scope.model(fragment.uuid) as? Message else { continue }
      stamp(message, by: changes.author ?? "unknown")
    }
  }

  private func stamp(_ message: Message, by author: String, at date: Date? = nil) {
    let stamp =
      stamps[message.uuid] ?? Stamp(author: author, date: date ?? Date(), text: message.text)
    stamps[message.uuid] = stamp
    (message.author, message.date, message.text) = (stamp.author, stamp.date, stamp.text)
  }
}
