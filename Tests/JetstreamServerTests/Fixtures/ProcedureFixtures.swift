import Foundation
import Jetstream

@testable import JetstreamServer

/// Adds to the likes of a canvas, up to a limit.
struct Like: Procedure {
  static let name = "Canvas.like"
  var count = 1
  var limit = 10

  enum Failure: Error, Codable, Equatable { case full(at: Int) }

  func run(on canvas: Canvas) throws(Failure) -> Int {
    canvas.name = "liked"
    guard canvas.likes + count <= limit else { throw .full(at: canvas.likes) }
    canvas.likes += count
    return canvas.likes
  }
}

/// Adds a shape of a UUID of the caller's or, without one, of each side's own.
struct Draw: Procedure {
  static let name = "Canvas.draw"
  var shape: UUID?
  var label = "new"

  func run(on canvas: Canvas) -> UUID {
    let made = Shape()
    made.label = label
    let model = shape.map { Shape(uuid: $0) } ?? made
    model.label = label
    canvas.shapes.append(model)
    return model.uuid
  }
}

extension RawPeer {
  func fetch(as client: UUID?, _ name: String = "Canvas", decided: Int? = nil) {
    var fetch = ScopeFetch(name: name)
    (fetch.client, fetch.decided) = (client, decided)
    send(stamp(.scopeFetch(fetch)))
  }

  /// Calls ``Like``. Returns the index of the message.
  @discardableResult
  func call(number: Int?, _ arguments: JSONValue = ["count": 1, "limit": 10]) -> Int {
    var sync = ScopeSync(
      scopeIndex: scopeIndex, fragments: [], atomic: true, procedure: Like.name)
    (sync.arguments, sync.number) = (arguments, number)
    let message = stamp(.scopeSync(sync))
    send(message)
    return message.index
  }

  @discardableResult
  func submit(_ fragments: [SyncFragment], number: Int?) -> Int {
    var sync = ScopeSync(scopeIndex: scopeIndex, fragments: fragments)
    sync.number = number
    let message = stamp(.scopeSync(sync))
    send(message)
    return message.index
  }

  func reply(to index: Int) -> ScopeSyncReply? {
    for case .scopeSyncReply(let reply) in messages where reply.replyTo == index { return reply }
    return nil
  }
}

/// The calls of ``Like`` that a server has begun.
final class CountedCalls {
  var count = 0
  /// True if each fails.
  var fails = true
}

extension InMemoryWorld {
  /// Makes a world whose server counts calls of ``Like``, and forgets the decisions of each client that has left, or all of
  /// such a client.
  static func forgetful(
    _ calls: CountedCalls, clients: Int = .max, bytes: Int? = 1
  ) -> InMemoryWorld {
    var configuration = ServerEngine.Configuration()
    configuration.absentDecisionBytes = bytes
    configuration.rememberedClients = clients
    configuration.streamLimit.sets = 4
    let world = InMemoryWorld(configuration: configuration)
    world.procedures[Like.name] = ServedProcedure(takesArguments: true) {
      [unowned world] request in
      calls.count += 1
      if calls.fails {
        world.server.ended(request, after: Like.Failure.full(at: 0), Like.Failure.self)
      } else {
        _ = try? request.commit(Like())
      }
    }
    return world
  }
}
