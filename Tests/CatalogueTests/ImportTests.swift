import Foundation
import Jetstream
import Testing

@testable import catalogue

@Suite("Importing a catalogue")
struct ImportTests {
  private static let tables = """
    "areaNames": {"1": "Parterre"}, "audienceSubCategoryNames": {}, "blockNames": {},
    "seatCategoryNames": {}, "subTopicNames": {}, "subjectNames": {}, "topicNames": {},
    "venueNames": {"HALL": "Great Hall"}, "topicSubTopics": {"7": [8, 9]}
    """

  private static func text(performance more: String = "", price: String = "\"amount\": 900")
    -> String
  {
    """
    {\(tables),
     "events": {"5": {"id": 5, "name": "Messe", "description": null, "logo": null, "subtitle": null,
       "subjectCode": null, "subTopicIds": [1, 2], "topicIds": []}},
     "performances": [{"id": 6, "eventId": 5, "start": 1372701600500, "venueCode": "HALL",
       "logo": null, "name": null, "seatMapImage": null, \(more)
       "prices": [{\(price), "audienceSubCategoryId": 2, "seatCategoryId": 3}],
       "seatCategories": [{"seatCategoryId": 3, "areas": [{"areaId": 4, "blockIds": [10]}]}]}]}
    """
  }

  private func problem(_ text: String) -> String? {
    do throws(ImportError) {
      _ = try Catalogue(json: Array(text.utf8), file: "a.json")
      return nil
    } catch {
      return error.description
    }
  }

  @Test("Every part arrives")
  func everyPart() throws {
    let catalogue = try Catalogue(json: Array(Self.text().utf8), file: "a.json")
    #expect(catalogue.events[0].subTopicIds == [1, 2])
    #expect(catalogue.events[0].name == "Messe")
    let performance = catalogue.performances[0]
    #expect(performance.start == Date(timeIntervalSince1970: 1_372_701_600.5))
    #expect(performance.prices[0].amount == 900)
    #expect(performance.seatCategories[0].areas[0].blockIds == [10])
    #expect(catalogue.areaNames.map(\.name) == ["Parterre"])
    #expect(catalogue.venueNames.map(\.id) == ["HALL"])
    #expect(catalogue.topicSubTopics[0].topicId == 7)
    #expect(catalogue.topicSubTopics[0].subTopicIds == [8, 9])
  }

  @Test("An error tells the file, the place and the problem")
  func errors() {
    #expect(
      problem(Self.text(price: "\"amount\": \"a lot\""))
        == "a.json: performances[0].prices[0].amount: should be a whole number")
    #expect(
      problem(Self.text(price: "\"sum\": 900"))
        == "a.json: performances[0].prices[0].amount: is missing; it should be a whole number")
    #expect(problem("{}") == "a.json: events: is missing; it should be an object")
    #expect(problem("[]") == "a.json: should be an object")
    #expect(problem("{")?.hasPrefix("a.json: is not JSON: ") == true)
  }

  @Test("A missing file is named")
  func missingFile() {
    #expect {
      try Catalogue(contentsOfFile: "/nowhere/a.json")
    } throws: {
      "\($0)" == "/nowhere/a.json: there is no such file"
    }
  }

  @Test("A made-up one has all its models, and is the same each time")
  @MainActor
  func sample() throws {
    let json = try SampleCatalogue.json(performances: 60)
    #expect(try SampleCatalogue.json(performances: 60) == json)
    let catalogue = try Catalogue(json: json, file: "sample")
    #expect(catalogue.events.count == 45 && catalogue.performances.count == 60)
    #expect(Scope(name: "Catalogue", root: catalogue).count > 2_000)
  }

  @Test("The real one has all its models", .enabled(if: Place.realData != nil))
  @MainActor
  func realFile() throws {
    let catalogue = try Catalogue(contentsOfFile: try #require(Place.realData))
    #expect(catalogue.events.count == 184)
    #expect(catalogue.performances.count == 243)
    let scope = Scope(name: "Catalogue", root: catalogue)
    #expect(scope.count > 10_000)
  }
}

@Suite("The command line")
struct ArgumentTests {
  @Test("Options are read")
  func options() throws {
    let join = try Command(
      arguments: ["join", "--url", "ws://h:1", "--edits", "10", "--seed", "3", "--cut", "2"])
    #expect(
      join
        == .join(JoinOptions(url: "ws://h:1", cuts: 2, editing: EditOptions(edits: 10, seed: 3))))
    #expect(try Command(arguments: ["serve", "--wait", "--help"]) == .help)
    #expect(
      try Command(arguments: ["serve", "--port", "80", "--wait"])
        == .serve(ServeOptions(port: 80, editing: EditOptions(waits: true))))
  }

  @Test("The catalogue is read from the current folder, unless a file or a folder is named")
  func file() {
    var options = ServeOptions()
    #expect(options.path(environment: [:]) == "citm_catalog.json")
    #expect(options.path(environment: ["JETSTREAM_DATA": "data"]) == "data/citm_catalog.json")
    options.file = "other.json"
    #expect(options.path(environment: ["JETSTREAM_DATA": "data"]) == "other.json")
  }

  @Test("Rooms that are named have logs of their own, and lines that begin with their names")
  func rooms() throws {
    guard
      case .serve(let named) = try Command(arguments: ["serve", "--room", "A", "--room", "B2"]),
      case .serve(let plain) = try Command(arguments: ["serve"])
    else {
      Issue.record("Both are commands to serve.")
      return
    }
    #expect(named.rooms.all == ["A", "B2"] && plain.rooms.all == ["Catalogue"])
    #expect(named.rooms.prefix(of: "B2") == "B2 " && plain.rooms.prefix(of: "Catalogue").isEmpty)
    #expect(named.rooms.log(of: "B2", in: "logs") == "logs/B2")
    #expect(plain.rooms.log(of: "Catalogue", in: "logs") == "logs")
  }

  @Test(
    "What is wrong is said",
    arguments: [
      ([], "say what to do: serve, join, record, replay or schema"),
      (["sing"], "there is no command 'sing': say serve, join, record, replay or schema"),
      (["join"], "join needs --url"),
      (["join", "--url"], "--url needs a value"),
      (["join", "--url", "h:1"], "--url should begin with ws:// or wss://, not 'h:1'"),
      (["serve", "--cut", "1"], "there is no option '--cut' here"),
      (["serve", "--room", "../a"], "--room should be letters and digits, not '../a'"),
      (["join", "--room", "A", "--room", "A"], "--room 'A' is given twice"),
      (["serve", "--port", "x"], "--port should be a number from 0 to 65535, not 'x'"),
      (["serve", "--name", "a b"], "--name should be one word, not 'a b'"),
      (["record"], "record needs --log"),
      (["record", "--log", "a", "--pause", "5"], "there is no option '--pause' here"),
      (["record", "--log", "a", "--wait"], "there is no option '--wait' here"),
      (["record", "--log", "a", "--tell"], "there is no option '--tell' here"),
      (["replay", "--at", "1"], "replay needs --log"),
      (["replay", "--check", "0"], "--check should be 1 or more"),
      (["replay", "--seed", "1"], "there is no option '--seed' here"),
    ] as [([String], String)])
  func errors(arguments: [String], message: String) {
    #expect(throws: UsageError(message: message)) { try Command(arguments: arguments) }
  }
}
