import Jetstream

/// One event of a simulation. A run is a list of events, which can be saved and replayed.
///
/// An event is complete in itself: its random choices are derived from its own seed, and an event
/// without an object, such as the cut of a connection that does not exist, does nothing. So a list
/// stays valid when events are taken out of it.
public enum SimulationEvent: Sendable, Hashable, Codable {
  /// A client makes a random edit.
  case edit(client: Int, seed: UInt64)
  /// A client makes a scripted edit.
  case script(client: Int, name: String, seed: UInt64)
  /// The server makes a random edit.
  case serverEdit(seed: UInt64)
  /// An old browser client makes a random edit.
  case browserEdit(browser: Int, seed: UInt64)
  /// The connection of an old browser client is cut, and it loads its page again.
  case reload(browser: Int)
  /// A client makes a change set of its collected changes.
  case flush(client: Int)
  /// Time passes, and everything that is due by then arrives.
  case pass(milliseconds: Int)
  /// Everything comes to rest, and all replicas are compared.
  case rest
  /// The connection of a client is cut.
  case cut(client: Int)
  /// A client is unreachable for some time.
  case partition(client: Int, milliseconds: Int)
  /// A frame in transit is lost.
  case lose(client: Int, toServer: Bool, pick: Int)
  /// A frame in transit arrives twice.
  case duplicate(client: Int, toServer: Bool, pick: Int)
  /// A frame in transit is overtaken by the next one.
  case reorder(client: Int, toServer: Bool, pick: Int)
  /// The process of a client ends, and a new one starts.
  case crashClient(Int)
  /// The process of the server ends, and a new one starts.
  case crashServer
  /// The next operation of some kind fails on the disk of a client, or of the server if `client` is
  /// nil.
  case failDisk(client: Int?, pick: Int)
  /// The server closes its scope, and opens it again when a client fetches it.
  case closeScope
  /// The server starts again from an old copy of its journal, under a new epoch.
  case loseHistory(pick: Int)
  /// A client changes its sync mode.
  case mode(client: Int, SimulatedMode)
  /// A client syncs once, whatever its mode is.
  case sync(client: Int)
  /// The app of a client discards a conflict of its ledger, or retries it.
  case conflict(client: Int, pick: Int)
  /// The app of a client grants or denies the use of the network.
  case permission(client: Int, isGranted: Bool)
  /// The app of a client pauses or resumes incoming changes.
  case pauseIncoming(client: Int, isPaused: Bool)
  /// The app of the server gives a client other rights in the scope.
  case access(client: Int, SimulatedAccess)
  /// A client calls the procedure of the world.
  case call(client: Int, seed: UInt64)
}

/// The sync modes of the clients of a simulation.
public enum SimulatedMode: String, Sendable, Hashable, Codable, CaseIterable {
  case realtime, pushOnly, paused, manual, polling

  var mode: SyncMode {
    switch self {
    case .realtime: .realtime
    case .pushOnly: .pushOnly
    case .paused: .paused
    case .manual: .manual
    case .polling: .polling(every: .milliseconds(Simulation.Times.poll))
    }
  }
}

extension SimulationEvent {
  /// The number of the client that the event is about; nil if it is about no client or about all of
  /// them.
  public var client: Int? {
    switch self {
    case .edit(let client, _), .script(let client, _, _), .flush(let client), .cut(let client),
      .partition(let client, _), .lose(let client, _, _), .duplicate(let client, _, _),
      .reorder(let client, _, _), .crashClient(let client), .mode(let client, _),
      .sync(let client), .permission(let client, _), .conflict(let client, _),
      .pauseIncoming(let client, _), .access(let client, _),
      .call(let client, _):
      client
    case .failDisk(let client, _): client
    case .serverEdit, .closeScope, .browserEdit, .reload, .pass, .rest, .crashServer, .loseHistory:
      nil
    }
  }
}

extension SimulationEvent: CustomStringConvertible {
  /// A description of the event, for traces and reports.
  public var description: String {
    switch self {
    case .edit(let client, let seed): "client \(client) edits (\(seed))"
    case .script(let client, let name, let seed): "client \(client) runs \(name) (\(seed))"
    case .serverEdit(let seed): "the server edits (\(seed))"
    case .browserEdit(let browser, let seed): "browser \(browser) edits (\(seed))"
    case .reload(let browser): "browser \(browser) loses its connection"
    case .flush(let client): "client \(client) makes a change set"
    case .pass(let milliseconds): "\(milliseconds) ms pass"
    case .rest: "everything comes to rest"
    case .cut(let client): "the connection of client \(client) is cut"
    case .partition(let client, let milliseconds):
      "client \(client) is out of reach for \(milliseconds) ms"
    case .lose(let client, let toServer, let pick):
      "a frame \(Self.way(client, toServer)) is lost (\(pick))"
    case .duplicate(let client, let toServer, let pick):
      "a frame \(Self.way(client, toServer)) is doubled (\(pick))"
    case .reorder(let client, let toServer, let pick):
      "a frame \(Self.way(client, toServer)) is overtaken (\(pick))"
    case .crashClient(let client): "client \(client) crashes"
    case .crashServer: "the server crashes"
    case .closeScope: "the server closes its scope"
    case .loseHistory(let pick): "the server loses a part of its history (\(pick))"
    case .failDisk(let client, let pick):
      "the disk of \(client.map { "client \($0)" } ?? "the server") fails (\(pick))"
    case .mode(let client, let mode): "client \(client) syncs in mode \(mode.rawValue)"
    case .sync(let client): "client \(client) syncs"
    case .conflict(let client, let pick): "client \(client) looks at a conflict (\(pick))"
    case .permission(let client, let isGranted):
      "client \(client) may \(isGranted ? "" : "not ")use the network"
    case .pauseIncoming(let client, let isPaused):
      "client \(client) \(isPaused ? "pauses" : "resumes") what the server sends"
    case .call(let client, let seed): "client \(client) makes a call (\(seed))"
    case .access(let client, let access): "the server gives client \(client) \(access.rawValue)"
    }
  }

  private static func way(_ client: Int, _ toServer: Bool) -> String {
    toServer ? "from client \(client)" : "to client \(client)"
  }
}
