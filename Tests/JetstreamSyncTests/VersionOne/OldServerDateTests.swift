import Foundation
import Jetstream
import JetstreamServer
import Testing

private final class Meeting: ModelObject {
  @Property var start = Date(timeIntervalSince1970: 0)
  @Property var end: Date?
  @Property var reminders: [Date] = []
  @Property var breaks: ModelArray<Break> = []
}

private final class Break: ModelObject {
  @Property var from = Date(timeIntervalSince1970: 0)
}

@Suite("Dates towards servers of both versions")
struct OldServerDateTests {
  /// A bit more than one and a half milliseconds behind a whole second.
  private let odd = Date(timeIntervalSince1970: 1_420_070_400.001_6)

  private func sentDate(protocol version: Int?, _ form: DateForm?) -> JSONValue? {
    var configuration = ClientEngine.Configuration()
    configuration.dateForm = form
    let meeting = Meeting()
    let server = ScriptedServer(root: meeting, configuration: configuration)
    server.connect()
    server.open()
    server.fetch()
    server.receive(
      .sessionCreateReply(SessionCreateReply(sessionToken: "secret", protocol: version)))
    let position = version.map { _ in ScopeStanding(position: .init(epoch: "e", sequence: 0)) }
    server.receive(
      .scopeFetchReply(
        ScopeFetchReply(index: 1, replyTo: 1, scopeIndex: 0, standing: position)), server.state(2))
    meeting.start = Date(timeIntervalSince1970: 1_420_070_400.25)
    server.scope.flush()
    return server.takeSyncs().first?.fragments.first?.properties["start"]
  }

  @Test("A server of version 1 is sent text, which is what every one of them reads")
  func detected() {
    #expect(sentDate(protocol: nil, nil) == "2015-01-01T00:00:00.250Z")
    #expect(sentDate(protocol: 2, nil) == .double(1_420_070_400.25))
  }

  @Test("A form that the app asks for is sent to any server")
  func override() {
    #expect(sentDate(protocol: nil, .seconds) == .double(1_420_070_400.25))
    #expect(sentDate(protocol: 2, .iso8601) == "2015-01-01T00:00:00.250Z")
  }

  @Test("Dates that no four-digit year names stay numbers, and none is lost")
  func extremes() {
    let meeting = Meeting()
    let server = ScriptedServer(root: meeting)
    server.join()
    meeting.start = Date(timeIntervalSince1970: .infinity)
    meeting.end = Date(timeIntervalSince1970: 1e13)
    server.scope.flush()
    let sent = server.takeSyncs().first?.fragments.first?.properties
    #expect(sent?["start"] == Date(timeIntervalSince1970: .infinity)._jsonValue)
    #expect(sent?["end"].flatMap(Double._decode) == 1e13)
  }

  @Test("What is smaller than a millisecond is lost for all, also for the client that wrote it")
  func rounding() {
    var configuration = ServerEngine.Configuration()
    configuration.highestVersion = 1
    let world = InMemoryWorld(configuration: configuration)
    let scope = Scope(name: "Canvas", root: Meeting(), ticker: world.serverTicker)
    world.replaced = scope
    world.server.host(scope)
    let writer = world.addClient(root: Meeting())
    let reader = world.addClient(root: Meeting())
    for client in world.clients { client.join() }
    world.settle()
    let meeting = writer.scope.root as! Meeting
    meeting.start = odd
    meeting.reminders = [odd, Date(timeIntervalSince1970: 3)]
    let pause = Break()
    pause.from = odd
    meeting.breaks.append(pause)
    world.settle()
    #expect(abs(meeting.start.timeIntervalSince1970 - 1_420_070_400.002) < 0.000_01)
    for client in [writer, reader] { #expect(client.scope.canonicalJSON == scope.canonicalJSON) }
    #expect(writer.engine.checkInvariants() == [] && writer.scope.conflicts.items.isEmpty)
  }
}
