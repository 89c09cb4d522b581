import Foundation
import Jetstream
import JetstreamServer

@main
@MainActor
enum CatalogueCommand {
  static func main() async {
    do {
      switch try Command(arguments: Array(CommandLine.arguments.dropFirst())) {
      case .help: Console.give(Command.usage)
      case .serve(let options): await serve(options)
      case .join(let options): await join(options)
      case .record(let options): await record(options)
      case .replay(let options): replay(options)
      case .schema: Console.say("\(ScopeSchema(of: Catalogue.self).json)")
      }
    } catch {
      Console.fail("\(error.message)\nTry 'catalogue --help'.", status: 2)
    }
  }

  private static func serve(_ options: ServeOptions) async {
    Console.outliveReader()
    let server = Server()
    if let folder = options.log, !options.rooms.named.isEmpty { Console.makeFolder(folder) }
    let rooms = options.rooms.all.map { Room($0, options) }
    for room in rooms where !options.isOnDemand { await room.open(in: server) }
    server.resolveScope = { [weak server] _, name, _ in
      guard let room = rooms.first(where: { $0.name == name }) else {
        return .failure(.notThere("There is no scope '\(name)'"))
      }
      return room.scope(in: server)
    }
    do {
      let port = try await server.listen(port: options.port)
      Console.say("listening on ws://127.0.0.1:\(port)")
    } catch {
      Console.fail("cannot listen on port \(options.port): \(error)", status: 1)
    }
    Console.say("ready")
    await answer(Console.lines(), of: rooms, options.rooms) { await $0.participant() }
    await server.stop()
    do {
      for room in rooms { try await room.close(in: server) }
    } catch {
      Console.fail("the last changes could not be kept: \(error)", status: 1)
    }
  }

  private static func join(_ options: JoinOptions) async {
    Console.outliveReader()
    let client = Client(
      url: options.url, backoff: Backoff(first: .milliseconds(20), limit: .seconds(1)))
    let denial = client.onSessionDenied.listen {
      Console.fail("the session ended: \($0)", status: 1)
    }
    if let folder = options.log, !options.rooms.named.isEmpty { Console.makeFolder(folder) }
    var participants: [Participant] = []
    do {
      // With logs, the catalogues can be edited before there is a connection. A denied session ends the process, see
      // above.
      if options.log == nil {
        try await client.connect()
      } else {
        Task { try await client.connect() }
      }
      for room in options.rooms.all {
        participants.append(try await Participant(room, of: client, options))
      }
    } catch {
      Console.fail("\(options.url): \(error)", status: 1)
    }
    Console.say("ready")
    if !options.editing.waits { for participant in participants { participant.start() } }
    await answer(Console.lines(), of: participants, options.rooms) { $0 }
    denial.cancel()
    client.close()
    do {
      for participant in participants { try await participant.closeLog() }
    } catch {
      Console.fail("the last changes could not be kept: \(error)", status: 1)
    }
  }

  /// Answers lines until one of them says `exit`, or they end. A line is for the room with whose name it begins, if
  /// rooms have names.
  private static func answer<Place>(
    _ lines: AsyncStream<String>, of places: [Place], _ rooms: RoomNames,
    participant: (Place) async -> Participant?
  ) async {
    for await line in lines {
      if line == "exit" { return }
      guard let at = rooms.all.firstIndex(where: { line.hasPrefix(rooms.prefix(of: $0)) }) else {
        Console.say("error: '\(line)' begins with the name of no room")
        continue
      }
      let prefix = rooms.prefix(of: rooms.all[at])
      if let participant = await participant(places[at]) {
        await participant.answer(String(line.dropFirst(prefix.count)))
      } else {
        Console.say(prefix + "error: no client has fetched the catalogue yet")
      }
    }
  }
}

extension Participant {
  /// Joins a room.
  fileprivate convenience init(
    _ room: String, of client: Client, _ options: JoinOptions
  ) async throws {
    let catalogue = Catalogue()
    let scope = Scope(name: room, root: catalogue)
    let log = try options.log.map { folder throws(LogError) in
      try FragmentLog(options.rooms.log(of: room, in: folder))
    }
    if let log {
      try client.fetch(scope, log: log, snapshotEvery: options.snapshotEvery)
    } else {
      try await client.fetch(scope)
    }
    self.init(
      scope: scope, catalogue: catalogue, client: client, log: log,
      options: options.editing, cuts: options.cuts, prefix: options.rooms.prefix(of: room))
  }
}
