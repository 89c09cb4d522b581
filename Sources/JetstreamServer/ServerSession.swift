import Foundation
import Jetstream

/// A client's session as the application sees it.
public struct SessionInfo: Sendable, Hashable {
  /// The token with which the client resumes the session. Whoever knows it can take the session over.
  public let token: String
  /// Headers and query parameters of the connection whose names begin with `x-jetstream-`; the rest
  /// of the name, in lower case, is the key.
  public let connectionParams: [String: String]
  /// What the client sent when it created the session.
  public let params: JSONValue
  /// The version that the client says it has.
  public let version: String
}

/// One session: what its client has been told, and what it has proved to have seen.
final class ServerSession {
  /// A scope that the session has fetched.
  struct Subscription {
    let host: ScopeHost
    /// The number up to which the client has provably seen everything.
    var proven: Int
    /// Messages that are not acknowledged: their index, and the number that they bring.
    var sent: [(index: Int, sequence: Int)] = []
    /// Where others' changes of a property were last told, while that is not acknowledged.
    var touched: [PropertyKey: Int] = [:]
  }

  let number: Int
  let info: SessionInfo
  var channel: ReliableChannel
  /// The connection that the session uses now.
  var connection: Int?
  var subscriptions: [Subscription] = []
  /// Messages of this turn, which go out in one frame.
  var outbox: [Message] = []
  /// The highest index that was handed to the current connection or an earlier one.
  var transmitted = 0
  /// After a resume, nothing is sent until the client has said something: normally what it has seen.
  var isHeld = false
  var expiresAt: Duration
  var pingAt: Duration?

  init(number: Int, info: SessionInfo, limit: ReliableChannel.Limit, expiresAt: Duration) {
    self.number = number
    self.info = info
    self.channel = ReliableChannel(side: .server, limit: limit)
    self.expiresAt = expiresAt
  }

  /// Numbers a message and puts it into the frame of this turn. Gives its index.
  @discardableResult
  func queue(_ message: Message) -> Int {
    let stamped = channel.stamp(message)
    outbox.append(stamped)
    return stamped.index
  }

  /// The client has seen our messages up to `index`.
  func acknowledged(_ index: Int) {
    for at in subscriptions.indices {
      var proven = subscriptions[at].proven
      let count = subscriptions[at].sent.prefix { $0.index <= index }.count
      if count > 0 {
        proven = subscriptions[at].sent[count - 1].sequence
        subscriptions[at].sent.removeFirst(count)
        subscriptions[at].touched = subscriptions[at].touched.filter { $0.value > index }
      }
      subscriptions[at].proven = proven
    }
  }

  /// Tells the session of somebody else's changes.
  func tell(_ fragments: [SyncFragment], at scopeIndex: Int) {
    let index = queue(.scopeSync(ScopeSync(scopeIndex: scopeIndex, fragments: fragments)))
    subscriptions[scopeIndex].sent.append((index, subscriptions[scopeIndex].host.sequence))
    for fragment in fragments where fragment.kind == .change {
      for (key, _) in fragment.properties {
        subscriptions[scopeIndex].touched[PropertyKey(uuid: fragment.uuid, name: key)] = index
      }
    }
  }

  func submitter(at scopeIndex: Int) -> ScopeHost.Submitter {
    let subscription = subscriptions[scopeIndex]
    return ScopeHost.Submitter(session: number, proven: subscription.proven) {
      subscription.touched[$0] != nil
    }
  }
}
