import Foundation
import Jetstream

extension ServerEngine {
  /// Timeouts and limits.
  package struct Configuration {
    package var pingInterval: Duration = .seconds(10)
    /// The time after which the script of an old client is taken to have read what its WebSocket has received;
    /// see ``ScriptProbe``.
    package var readingTime: Duration = .seconds(1)
    package var handshakeTimeout: Duration = .seconds(10)
    /// The time after which a session is ended if its client has sent nothing.
    package var expiry: Duration = .seconds(600)
    /// The time that a procedure may take.
    package var procedureTime: Duration = .seconds(30)
    /// The time after which a session without a connection is ended if it has never fetched a scope.
    package var unusedExpiry: Duration = .seconds(5)
    /// The messages and bytes that may wait for a client's acknowledgement. A session that exceeds this is ended.
    package var keptLimit = ReliableChannel.Limit()
    /// The amount that a session of version 2 is sent of the stream of each scope before the client acknowledges it. One
    /// change set always fits, and all scopes together have half of ``keptLimit``. Further change sets wait in the stream,
    /// at no cost for the session. Clients acknowledge after 256 change sets or 1 MiB; the window must not be smaller.
    package var window = ScopeStream.Limit(sets: 10_000, bytes: 4 << 20)
    /// The messages and bytes that may wait for a client of version 1 without a connection. Nothing waits for clients
    /// of version 2: they are sent the change sets of the scope's stream when they come back.
    package var absentLimit = ReliableChannel.Limit(messages: 256, bytes: 256 << 10)
    /// The messages and bytes after which received messages are acknowledged before the next ping is due: a client
    /// keeps what it has sent until then.
    package var acknowledgeAfter = ReliableChannel.Limit.acknowledgement
    /// The approximate size in bytes of a message with a part of a state. Up to sixteen of them are on their way at a
    /// time.
    package var stateBytes = 256 << 10
    /// The approximate maximum size in bytes of a frame with several messages.
    package var frameBytes = 1 << 20
    /// The limits on what clients may have and send.
    package var limits = ServerLimits()
    /// The number of clients, at least, whose decisions each scope keeps; more if more have sessions.
    package var rememberedClients = 100_000
    /// The approximate size in bytes of the decisions that each scope keeps for all clients without a session together; nil
    /// for any.
    package var absentDecisionBytes: Int?
    /// The amount of change sets that each scope keeps in its stream, for clients that were away or are slow. One that has
    /// missed more gets the full state, and so does one for which the full state is less.
    package var streamLimit = ScopeStream.Extent(sets: 4096, bytes: 16 << 20)
    /// The size of a slice: of a change set with more than twice as many fragments, operations, elements and entries, about
    /// this many are looked at in each turn.
    package var sliceSize = 1_000
    /// The highest protocol version that the server speaks.
    package var highestVersion = 2
    /// The bounds of the scopes that are opened when sessions fetch them.
    package var openScopes = OpenScopes.Limits()
    /// Returns the rules of the scope of a name; nil for none.
    package var rules: @Sendable (_ scope: String) -> ScopeRules? = { _ in nil }
    /// The channel in which the engine tells and is told everything.
    package var channel = Channel()

    package init() {}
  }

  /// One of the channels of a server's sessions. In each of them, another engine serves other scopes.
  package struct Channel {
    /// The number; 0 for the channel of the engine that creates the sessions.
    package let number: Int
    /// The number of channels.
    package let count: Int
    /// The beginning and the end of each frame.
    let frameStart: [UInt8]
    let frameEnd: [UInt8]

    package init(number: Int = 0, of count: Int = 1) {
      (self.number, self.count) = (number, count)
      (frameStart, frameEnd) = MessageFrame.ends(of: number)
    }
  }

  /// The functions that the owner provides.
  package struct Hooks {
    /// Returns the channel of the engine that serves the scope of a name; nil if it is this one.
    package var channel: (_ name: String) -> Int?
    /// Finds out who asks for a session on a connection.
    package var authenticate: (SessionInfo, _ connection: Int) -> Authentication
    /// Decides about the rights of a session in the scope of a name.
    package var access: (SessionInfo, _ name: String, _ question: Int) -> AccessAnswer = {
      _, _, _ in .unguarded
    }
    package var fetch: (SessionInfo, String, JSONValue) -> Result<any Hostable, WireError>
    /// Returns the procedure of a name.
    package var procedure: (_ name: String) -> ServedProcedure? = { _ in nil }
    /// Makes the identity of a call by a client that does not number its change sets.
    package var makeCallID: () -> UUID = { UUID() }
    /// Returns true if the scope of a name is opened when it is fetched. `fetch` is not called for it then.
    package var opens: (_ name: String) -> Bool = { _ in false }
    package var report: (Diagnostic) -> Void
    /// Makes a session token, which must be impossible to guess.
    package var makeToken: () -> String
    /// Makes the name of a new epoch.
    package var makeEpoch: () -> String
    /// Returns a random number from 0 up to 1, for jitter.
    package var random: () -> Double
    /// Returns the current date, for change sets without one; nil to give them none.
    package var date: () -> Date?
    package var sessionEnded: (SessionInfo) -> Void
    /// Called before that for a session that the app ends, or whose credentials have expired.
    package var sessionTakenAway: (SessionInfo) -> Void = { _ in }
    /// Counts that a client has reached a limit.
    package var limitReached: (ServerLimit) -> Void = { _ in }

    package init(
      channel: @escaping (_ name: String) -> Int? = { _ in nil },
      authenticate: @escaping (SessionInfo, _ connection: Int) -> Authentication = { _, _ in
        .accepted()
      },
      fetch: @escaping (SessionInfo, String, JSONValue) -> Result<any Hostable, WireError>,
      report: @escaping (Diagnostic) -> Void = { _ in },
      makeToken: @escaping () -> String,
      makeEpoch: @escaping () -> String = { UUID().wireText },
      random: @escaping () -> Double,
      date: @escaping () -> Date? = { nil },
      sessionEnded: @escaping (SessionInfo) -> Void = { _ in }
    ) {
      self.channel = channel
      self.authenticate = authenticate
      self.fetch = fetch
      self.report = report
      self.makeToken = makeToken
      self.makeEpoch = makeEpoch
      self.random = random
      self.date = date
      self.sessionEnded = sessionEnded
    }
  }
}
