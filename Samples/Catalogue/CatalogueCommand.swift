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
      }
    } catch {
      Console.fail("\(error.message)\nTry 'catalogue --help'.", status: 2)
    }
  }

  private static func serve(_ options: ServeOptions) async {
    Console.outliveReader()
    let server = Server()
    let room = Room(options)
    if !options.isOnDemand { await room.open(in: server) }
    server.chooseScope = { [weak server] _, name, _ in
      guard name == Room.name else { return .failure(.notThere("There is no scope '\(name)'")) }
      return room.scope(in: server)
    }
    do {
      let port = try await server.listen(port: options.port)
      Console.say("listening on ws://127.0.0.1:\(port)")
    } catch {
      Console.fail("cannot listen on port \(options.port): \(error)", status: 1)
    }
    Console.say("ready")
    for await line in Console.lines() {
      if let participant = await room.participant() {
        if await !participant.answer(line) { break }
      } else if line == "exit" {
        break
      } else {
        Console.say("error: no client has fetched the catalogue yet")
      }
    }
    await server.stop()
  }

  private static func join(_ options: JoinOptions) async {
    Console.outliveReader()
    let catalogue = Catalogue()
    let scope = Scope(name: Room.name, root: catalogue)
    let client = Client(
      url: options.url, backoff: Backoff(first: .milliseconds(20), limit: .seconds(1)))
    let denial = client.onSessionDenied.listen {
      Console.fail("the session ended: \($0)", status: 1)
    }
    let log: ClientLog?
    do {
      log = try options.log.map { path throws(LogError) in try ClientLog(path) }
      if let log {
        // The catalogue can be edited before there is a connection. A denied session ends the process, see above.
        Task { try await client.connect() }
        try client.fetch(scope, log: log, snapshotEvery: options.snapshotEvery)
      } else {
        try await client.connect()
        try await client.fetch(scope)
      }
    } catch {
      Console.fail("\(options.url): \(error)", status: 1)
    }
    let participant = Participant(
      scope: scope, catalogue: catalogue, client: client, log: log?.records,
      options: options.editing, cuts: options.cuts)
    Console.say("ready")
    if !options.editing.waits { participant.start() }
    await participant.answer(Console.lines())
    denial.cancel()
    client.close()
  }
}
