import Foundation
import Testing

@testable import Jetstream

@Suite("Dates towards old servers", .paced)
struct DateFormTests {
  final class Meeting: ModelObject {
    @Property var start = Date(timeIntervalSince1970: 0)
    @Property var end: Date?
    @Property var reminders: [Date] = []
    @Property var holidays: Set<Date> = []
    @Property var length = 0.0
  }

  @Test("Only date properties become text, with milliseconds")
  func onlyDates() throws {
    let scope = Scope(name: "Meetings", root: Meeting(), ticker: .manual())
    let fragment = SyncFragment(
      .change, uuid: UUID(), className: "Meeting",
      properties: [
        "start": .double(1_420_070_400.123), "end": .null, "reminders": [.integer(10)],
        "holidays": [.integer(20)], "length": .double(10),
      ])
    let sent = DateForm.iso8601.applied(to: fragment, in: scope)
    #expect(sent.properties["start"] == "2015-01-01T00:00:00.123Z")
    #expect(sent.properties["end"] == .null)
    #expect(sent.properties["reminders"] == ["1970-01-01T00:00:10.000Z"])
    #expect(sent.properties["holidays"] == ["1970-01-01T00:00:20.000Z"])
    #expect(sent.properties["length"] == .double(10))
    #expect(DateForm.seconds.applied(to: fragment, in: scope) == fragment)
    let read = try #require(Date._decode(sent.properties["start"]!))
    #expect(abs(read.timeIntervalSince1970 - 1_420_070_400.123) < 0.0005)
  }

  @Test("An index that no peer can count to is refused", arguments: ["9007199254740992", "1e300"])
  func indexLimit(index: String) throws {
    let json = try JSONValue(parsing: #"{"type":"Ping","index":0,"ack":\#(index)}"#)
    #expect(throws: MessageError.self) { try Message(json: json) }
  }
}
