import Jetstream
import JetstreamWebSocket

/// The shards of a server.
struct ServerShards: Sendable {
  /// The shards, in the order of their channels, which are numbered from 1.
  let all: [ServerShard]
  /// The limits that were reached, in them and on the server's own actor.
  let hits = LimitHits()

  /// Makes shards for a server that lives on an actor, on which the caller is.
  init(count: Int, of actor: any Actor) {
    precondition(count >= 0, "A server cannot spread scopes over \(count) loops.")
    let loop = EventLoop.isHome(of: actor) ? EventLoop.current : nil
    all = (0..<count).map { ServerShard(channel: $0 + 1, serverLoop: loop) }
  }

  /// The shard of a channel; nil if there is none.
  subscript(channel: Int) -> ServerShard? {
    all.indices.contains(channel - 1) ? all[channel - 1] : nil
  }

  /// Prepares all of them. `sessionEnded` is called with the token of each session that ends in one of them.
  func prepare(
    _ configuration: Server.Configuration, report: @escaping @Sendable (Diagnostic) -> Void,
    sessionEnded: @escaping @Sendable (String) -> Void
  ) {
    let (count, hits) = (all.count + 1, hits)
    for shard in all {
      shard.perform {
        $0.prepare(configuration, of: count, hits, report: report, sessionEnded: sessionEnded)
      }
    }
  }

  /// Runs them from now on, until ``stop()``.
  func begin() { for shard in all { shard.perform { $0.begin() } } }

  /// Ends all sessions and closes all connections, in the order of the calls of this and ``begin()``.
  func stop() { for shard in all { shard.perform { $0.stop() } } }

  /// Returns once the shards have done what they were told before.
  func catchUp() async { for shard in all { await shard.catchUp() } }

  /// Drops everything.
  func abandon() { for shard in all { shard.perform { $0.abandon() } } }
}
