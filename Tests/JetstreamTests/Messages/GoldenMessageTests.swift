import Foundation
import Testing

@testable import Jetstream

@Suite("Golden messages", .paced)
struct GoldenMessageTests {
  /// The files, and the types of their messages.
  private static let types: [(file: String, type: String)] = [
    ("SessionCreate", "SessionCreate"),
    ("SessionCreateReply", "SessionCreateReply"),
    ("SessionCreateReply-denied", "SessionCreateReply"),
    ("ScopeFetch", "ScopeFetch"),
    ("ScopeFetchReply", "ScopeFetchReply"),
    ("ScopeFetchReply-denied", "ScopeFetchReply"),
    ("ScopeState", "ScopeState"),
    ("ScopeSync", "ScopeSync"),
    ("ScopeSync-procedure", "ScopeSync"),
    ("ScopeSync-empty", "ScopeSync"),
    ("ScopeSyncReply", "ScopeSyncReply"),
    ("Ping", "Ping"),
    ("Ping-resend", "Ping"),
    ("SessionCreate-2", "SessionCreate"),
    ("SessionCreateReply-2", "SessionCreateReply"),
    ("ScopeFetch-2", "ScopeFetch"),
    ("ScopeFetch-2-schema", "ScopeFetch"),
    ("ScopeFetchReply-2", "ScopeFetchReply"),
    ("ScopeFetchReply-2-forgotten", "ScopeFetchReply"),
    ("ScopeSync-2", "ScopeSync"),
    ("ScopeSync-2-stream", "ScopeSync"),
    ("ScopeSyncReply-2", "ScopeSyncReply"),
    ("Ping-2", "Ping"),
    ("Ping-2-seen", "Ping"),
    ("Ping-2-told", "Ping"),
    ("Ping-2-latest", "Ping"),
    ("Ping-2-checks", "Ping"),
    ("Ping-2-differences", "Ping"),
    ("ScopeSync-2-repairs", "ScopeSync"),
    ("ScopeState-2-part", "ScopeState"),
  ]

  @Test(
    "A message on file is read and written again, byte for byte", arguments: types)
  func golden(file: String, type: String) throws {
    let golden = try Self.golden(file)
    let message = try Message.decodeFrame(golden)[0].get()
    #expect(message.type == type)
    #expect(message.json.text == String(decoding: golden, as: UTF8.self))
    #expect(Message.encodeFrame([message], asArray: false) == golden)
    #expect(try Message(json: message.json) == message)
    let frame = Message.encodeFrame([message, message], asArray: true)
    #expect(try Message.decodeFrame(frame).map { try $0.get() } == [message, message])
  }

  @Test("Every file is tested")
  func complete() throws {
    let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
    let messages = files.filter { $0.hasSuffix(".json") }
    #expect(Set(messages) == Set(Self.types.map { "\($0.file).json" }))
  }

  private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "Golden")

  private static func golden(_ name: String) throws -> [UInt8] {
    let data = try Data(contentsOf: folder.appending(path: "\(name).json"))
    return data.last == UInt8(ascii: "\n") ? Array(data.dropLast()) : Array(data)
  }
}
