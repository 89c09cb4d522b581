import Foundation
import Testing

@testable import Jetstream

/// Change sets and their answers are read in one go if they stand in the text that peers write, and field by field
/// otherwise, as with a space behind the first brace.
@Suite("Messages in the usual text", .paced)
struct PlainMessageTests {
  private static let uuid = UUID(uuidString: "0123e4f1-8a52-4c1e-9d2b-5a6b7c8d9e0f")!

  private static let messages: [Message] = {
    let change = SyncFragment(
      .change, uuid: uuid, className: "Shape", properties: ["level": 3, "name": "a\"b"])
    let addition = SyncFragment(.add, uuid: uuid, className: "Shape", properties: ["x": 0.5])
    var sync = ScopeSync(index: 7, scopeIndex: 0, fragments: [change])
    (sync.number, sync.decided, sync.origin.seen) = (4, 3, 12)
    var full = ScopeSync(index: 12, scopeIndex: 3, fragments: [addition, change], atomic: true)
    (full.number, full.sequence) = (1, 99)
    full.origin = ChangeOrigin(author: "Ada", seen: 0)
    (full.origin.message, full.origin.client) = ("tidy up", uuid)
    full.origin.date = Date(timeIntervalSince1970: 1_700_000_000.125)
    return [
      .scopeSync(sync), .scopeSync(full), .scopeSync(ScopeSync(scopeIndex: 1, fragments: [])),
      .scopeSyncReply(
        ScopeSyncReply(
          index: 3, replyTo: 7, fragmentReplies: [.init(), .init()], sequence: 100)),
      .scopeSyncReply(
        ScopeSyncReply(index: 3, replyTo: 7, fragmentReplies: [.init()], sequence: 100)),
      .scopeSyncReply(
        ScopeSyncReply(
          index: 3, replyTo: 7, fragmentReplies: [.init(error: .rejected("no"))], sequence: 1,
          effective: [change])),
    ]
  }()

  private func read(_ text: [UInt8]) -> Message? {
    try? Message.decodeFrame(text).first?.get()
  }

  /// Makes the reader go from field to field.
  private func spaced(_ text: [UInt8]) -> [UInt8] {
    text.first == UInt8(ascii: "{") ? [text[0], UInt8(ascii: " ")] + text.dropFirst() : text
  }

  @Test("Each is read as it was written")
  func roundTrip() throws {
    for message in Self.messages {
      let text = Message.encodeFrame([message], asArray: false)
      #expect(read(text) == message && read(spaced(text)) == message)
      #expect(message.json.text == String(decoding: text, as: UTF8.self))
    }
  }

  @Test("Both ways of reading agree about damaged text", arguments: [1, 2, 3] as [UInt64])
  func damaged(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let pieces = [#","number":1"#, #","decided":01"#, "1", "-", ".5", " ", ",", "}", "null", "\""]
    let texts = Self.messages.map { Message.encodeFrame([$0], asArray: false) }
    for step in 0..<6_000 {
      var text = texts[step % texts.count]
      let at = Int.random(in: 1..<text.count, using: &generator)
      switch Int.random(in: 0..<3, using: &generator) {
      case 0: text.remove(at: at)
      case 1: text[at] = text.randomElement(using: &generator)!
      default: text.insert(contentsOf: pieces.randomElement(using: &generator)!.utf8, at: at)
      }
      #expect(read(text) == read(spaced(text)), "\(String(decoding: text, as: UTF8.self))")
    }
  }

  @Test("A text that is too deep is refused at the same depth", arguments: 0..<6)
  func depth(limit: Int) {
    for message in Self.messages {
      let text = Message.encodeFrame([message], asArray: false)
      let limits = JSONLimits(maxDepth: limit)
      let (plain, other) = (
        try? Message.decodeFrame(text, limits: limits),
        try? Message.decodeFrame(spaced(text), limits: limits)
      )
      #expect(plain == other)
    }
  }
}
