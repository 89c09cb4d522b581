import Foundation
import Jetstream
import JetstreamServer

/// The rights that a simulated server gives a client in its scope.
public enum SimulatedAccess: String, Sendable, Hashable, Codable, CaseIterable {
  case readWrite, readOnly, none

  var answer: Result<ScopeAccess, WireError> {
    switch self {
    case .readWrite: .success(.readWrite)
    case .readOnly: .success(.readOnly)
    case .none:
      // The client asks again, and is let in once its rights are given back.
      .failure(.notNow("You may not have this", retryAfter: .milliseconds(100)))
    }
  }
}

/// The rights of all clients of a run, and the sessions in which they hold. They are the app's: they outlive the server's
/// process.
final class SimulatedRights {
  /// The numbers of the clients whose sessions have these tokens.
  private var clients: [String: Int] = [:]
  private var rights: [Int: SimulatedAccess] = [:]

  /// Notes the session that a client has got.
  func note(_ token: String, of client: Int) { clients[token] = client }

  subscript(client: Int) -> SimulatedAccess {
    get { rights[client] ?? .readWrite }
    set { rights[client] = newValue }
  }

  /// Returns the answer to the server's question about a session.
  func answer(for token: String) -> Result<ScopeAccess, WireError> {
    (clients[token].map { self[$0] } ?? .readWrite).answer
  }

  /// Returns the tokens of all sessions that a client has had, sorted.
  func tokens(of client: Int) -> [String] {
    clients.filter { $0.value == client }.map(\.key).sorted()
  }
}

extension SimulationRun {
  /// Gives a client other rights in the scope. Clients of version 1 would lose their session, and have no promise then.
  func setAccess(of client: SimulatedClient, to access: SimulatedAccess) {
    guard versions.areGuarded, client.version > 1, rights[client.number] != access else { return }
    for token in rights.tokens(of: client.number) {
      server.changeAccess(of: token, to: access.answer)
    }
    rights[client.number] = access
  }

  /// Reports a frame that tells a client of a scope that it may not have.
  func checkAccess(of frame: [UInt8], on id: Int) {
    guard let link = network.link(id), rights[link.client] == .none else { return }
    for message in PlainJSON(frame)?.messages ?? [] {
      let type = message["type"]?.text ?? ""
      if type == "ScopeSync" || type == "ScopeState" {
        report(.invariant, "Client \(link.client) may not have the scope, and is sent a \(type)")
      }
    }
  }
}
