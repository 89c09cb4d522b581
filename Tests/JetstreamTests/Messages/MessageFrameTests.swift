import Foundation
import Testing

@testable import Jetstream

@Suite("Frames of channels", .paced)
struct MessageFrameTests {
  private let ping = Message.ping(Ping(ack: 2))

  private func read(_ text: String) -> MessageFrame { MessageFrame(Array(text.utf8)) }

  private func messages(_ frame: MessageFrame) throws -> [Message] {
    try frame.messages.get().map { try $0.get() }
  }

  @Test("A frame names its channel, except for channel 0", arguments: [0, 1, 12])
  func roundTrip(channel: Int) throws {
    for count in 0..<3 {
      let sent = Array(repeating: ping, count: count)
      let bytes = Message.encodeFrame(sent, asArray: true, channel: channel)
      let frame = MessageFrame(bytes)
      #expect(try messages(frame) == sent && frame.channel == channel)
      #expect(bytes.starts(with: #"{"channel":"#.utf8) == (channel > 0))
    }
  }

  @Test("White space and other keys are read")
  func tolerance() throws {
    let frame = read(
      #" { "channel" : 4 , "future" : {"a":[1]}, "messages" : [ {"type":"Ping","index":0,"ack":2} ] } "#
    )
    #expect(try messages(frame) == [ping] && frame.channel == 4)
  }

  @Test("A message with a field of that name that is not the first one is a message")
  func field() throws {
    let frame = read(#"{"type":"Ping","index":0,"ack":2,"channel":1}"#)
    #expect(try messages(frame) == [ping] && frame.channel == 0)
  }

  @Test(
    "Other forms are refused",
    arguments: [
      #"{"channel":1}"#, #"{"channel":-1,"messages":[]}"#, #"{"channel":"1","messages":[]}"#,
      #"{"channel":1.5,"messages":[]}"#, #"{"channel":1,"messages":{}}"#,
      #"{"channel":9007199254740993,"messages":[]}"#,
    ])
  func invalid(text: String) {
    let frame = read(text)
    #expect(frame.channel == 0)
    #expect(throws: FrameError.invalidChannel) { try frame.messages.get() }
  }

  @Test("What is not JSON says where", arguments: [#"{"channel":1,"messages":["#, #"{"channel""#])
  func broken(text: String) {
    #expect(throws: FrameError.self) { try read(text).messages.get() }
    guard case .failure(.notJSON) = read(text).messages else {
      Issue.record("It is read: \(read(text))")
      return
    }
  }
}
