import Foundation
import Testing

@testable import Jetstream

@Suite("A conversation with the original server", .paced)
struct TranscriptTests {
  @Test(
    "Every frame reads as the original peers read it, and server frames are written alike",
    arguments: Transcript.all)
  func transcript(_ transcript: Transcript) throws {
    var serverFrames = 0
    var clientFrames = 0
    for (number, line) in try transcript.lines().enumerated() {
      guard case .object(let entry) = try JSONValue(parsing: line),
        case .string(let frame)? = entry["frame"], case .string(let direction)? = entry["dir"]
      else { continue }
      let bytes = Array(frame.utf8)
      let comment = Comment("line \(number + 1)")
      if direction == "s2c" {
        serverFrames += 1
        let messages = try Message.decodeFrame(bytes).map { try $0.get() }
        #expect(Message.isArrayFrame(bytes), comment)
        #expect(
          String(decoding: Message.encodeFrame(messages, asArray: true), as: UTF8.self) == frame,
          comment)
      } else if let problems = Self.problems[frame] {
        #expect(Self.read(bytes) == problems, comment)
      } else {
        clientFrames += 1
        let messages = try Message.decodeFrame(bytes).map { try $0.get() }
        let again = Message.encodeFrame(messages, asArray: Message.isArrayFrame(bytes))
        #expect(try Message.decodeFrame(again).map { try $0.get() } == messages, comment)
      }
    }
    #expect(serverFrames > 40)
    #expect(clientFrames > 20)
  }

  /// The frames that a client sent wrong on purpose.
  private static let problems: [String: String] = [
    "garbage": "not JSON: unexpected character at byte 0",
    #"{"type":"SessionCreate","index":0}"#: "SessionCreate 0: version is missing",
    #"{"type":"Nope","index":7}"#: "unknown message type \"Nope\"",
    #"{"type":"ScopeSync","scopeIndex":0,"fragments":[]}"#: "ScopeSync: index is missing",
    #"{"type":"ScopeSync","index":8,"scopeIndex":0,"fragments":[{"type":"change","#
      + #""uuid":"4d01cd3b-ae1a-429c-ae75-4c211b0adefa","properties":{"x":1}}]}"#:
      "ScopeSync 8: fragments[0]: clsName is missing",
    #"[{"type":"ScopeSync","index":9,"scopeIndex":0,"fragments":[]},{"type":"Nope","index":10}]"#:
      "ScopeSync 9, unknown message type \"Nope\"",
  ]

  private static func read(_ bytes: [UInt8]) -> String {
    do throws(FrameError) {
      let members = try Message.decodeFrame(bytes).map { result in
        switch result {
        case .success(let message): "\(message.type) \(message.index)"
        case .failure(let error): "\(error)"
        }
      }
      return members.joined(separator: ", ")
    } catch {
      return "\(error)"
    }
  }
}
