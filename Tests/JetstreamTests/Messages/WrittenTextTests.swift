import Foundation
import Testing

@testable import Jetstream

/// The fragments of a client's change set are passed on in the bytes in which they came, if they would be written in these.
@Suite("The text of a change set as it came", .paced)
struct WrittenTextTests {
  private static let uuid = "0123e4f1-8a52-4c1e-9d2b-5a6b7c8d9e0f"

  private func message(_ fragments: String, _ rest: String = #","number":4"#) -> String {
    #"{"type":"ScopeSync","index":7,"scopeIndex":1,"fragments":\#(fragments)\#(rest)}"#
  }

  private func fragment(_ properties: String, uuid: String = Self.uuid, _ rest: String = "")
    -> String
  {
    #"{"type":"change","uuid":"\#(uuid)","clsName":"Shape","properties":\#(properties)\#(rest)}"#
  }

  private func read(_ text: String) throws -> ScopeSync {
    let message = try #require(try Message.decodeFrame(Array(text.utf8)).first?.get())
    guard case .scopeSync(let sync) = message else {
      throw FrameError.notMessages
    }
    return sync
  }

  @Test(
    "Values in the form in which they are written keep their bytes",
    arguments: [
      "{}", #"{"a":1}"#, #"{"a":-1,"b":0,"c":999999999999999999}"#,
      #"{"a":null,"b":true,"c":false}"#,
      "{\"name\":\"é \u{7F}/ 🙂\",\"list\":[\"x\",{\"y\":[],\"z\":{}}]}",
    ])
  func kept(properties: String) throws {
    let text = "[\(fragment(properties))]"
    let sync = try read(message(text))
    #expect(sync.text?.bytes == Array(text.utf8))
    let written = FragmentsText(checksumming: sync.fragments)
    #expect(sync.text?.bytes == written.bytes && sync.text?.checksum == written.checksum)
  }

  @Test(
    "All other texts are written anew",
    arguments: [
      #"{"a": 1}"#, #"{"a":1.0}"#, #"{"a":1e2}"#, #"{"a":-0}"#, #"{"a":18446744073709551615}"#,
      #"{"a":"\/"}"#, #"{"a":"\u0041"}"#, "{\"a\":\"\\n\"}", #"{"a":[1 ]}"#,
    ])
  func other(properties: String) throws {
    #expect(try read(message("[\(fragment(properties))]")).text == nil)
  }

  @Test(
    "So are fragments with capitals, operations, or fields in another order, and several of them")
  func otherFragments() throws {
    let capitals = fragment("{}", uuid: Self.uuid.uppercased())
    let operations = fragment("{}", #","operations":{"n":[{"add":1}]}"#)
    let bases = fragment(#"{"a":1}"#, #","bases":{}"#)
    let order = #"{"uuid":"\#(Self.uuid)","type":"change","clsName":"Shape","properties":{}}"#
    let two = "\(fragment("{}")),\(fragment("{}"))"
    for text in [capitals, operations, bases, order, two, ""] {
      #expect(try read(message("[\(text)]")).text == nil, "\(text)")
    }
  }

  @Test("So are messages of servers, and of clients that do not number their change sets")
  func otherMessages() throws {
    let text = "[\(fragment("{}"))]"
    #expect(try read(message(text, "")).text == nil)
    #expect(try read(message(text, #","number":4,"sequence":9"#)).text == nil)
  }

  @Test(
    "Whatever the text, it is the one that its fragments are written in",
    arguments: [1, 2] as [UInt64])
  func random(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let pieces = [
      "0", "-0", "-7", "12", "1.5", "2E3", #""x""#, #""\t""#, #""\"""#, "[]", "[ ]", "{}", "null",
      #"{"k":1}"#, #"{"k":"é"}"#, "true", "123456789012345678", "1234567890123456789",
    ]
    var kept = 0
    for _ in 0..<2_000 {
      let count = Int.random(in: 0...3, using: &generator)
      let members = (0..<count).map { "\"p\($0)\":\(pieces.randomElement(using: &generator)!)" }
      let text = "[\(fragment("{\(members.joined(separator: ","))}"))]"
      let sync = try read(message(text))
      let written = FragmentsText(checksumming: sync.fragments)
      guard let own = sync.text else { continue }
      kept += 1
      #expect(
        own.bytes == written.bytes && own.checksum == written.checksum, "seed \(seed), \(text)")
    }
    #expect(kept > 100)
  }

  @Test("The text of a message that tells a change set is that of the message")
  func telling() throws {
    var sync = try read(message("[\(fragment(#"{"a":1}"#))]"))
    let text = sync.text
    sync = ScopeSync(scopeIndex: 3, fragments: sync.fragments)
    sync.sequence = 12
    sync.origin = ChangeOrigin(author: "Ada", seen: 4)
    sync.origin.date = Date(timeIntervalSince1970: 1_700_000_000.5)
    for text in [text, nil] {
      var output = JSONOutput()
      var last = WrittenOrigin()
      ScopeSync.write(
        telling: sync.fragments, as: text, at: 12, by: sync.origin, after: &last, inScope: 3,
        to: &output)
      #expect(Array(output.bytes) == Message.encodeFrame([.scopeSync(sync)], asArray: false))
    }
  }

  @Test("An origin is written anew where another one was written last")
  func origins() throws {
    var sync = try read(message("[\(fragment("{}"))]"))
    sync = ScopeSync(scopeIndex: 3, fragments: sync.fragments)
    var output = JSONOutput()
    var last = WrittenOrigin()
    let origins = [
      ChangeOrigin(), ChangeOrigin(author: "Ada", seen: 4), ChangeOrigin(author: "Ada", seen: 4),
      ChangeOrigin(author: "Ada", seen: 5), ChangeOrigin(), ChangeOrigin(author: "Ada", seen: 5),
      // Equal texts in other bytes.
      ChangeOrigin(author: "Ren\u{E9}"), ChangeOrigin(author: "Rene\u{301}"),
    ]
    for (at, origin) in origins.enumerated() {
      (sync.sequence, sync.origin) = (12 + at, origin)
      let start = output.count
      ScopeSync.write(
        telling: sync.fragments, as: nil, at: 12 + at, by: origin, after: &last, inScope: 3,
        to: &output)
      #expect(
        Array(output.bytes[start...]) == Message.encodeFrame([.scopeSync(sync)], asArray: false))
    }
  }

  @Test("A copy of a change set does not change with the other")
  func copies() throws {
    let sync = try read(message("[\(fragment("{}"))]"))
    var copy = sync
    #expect(copy == sync)
    (copy.index, copy.atomic, copy.fragments) = (8, true, [])
    #expect(sync.index == 7 && sync.atomic == nil && sync.fragments.count == 1)
    #expect(copy != sync && copy.number == 4)
  }
}
