import Foundation
import JetstreamSimulation
import Testing

@testable import Jetstream

@Suite("Lines of a log")
struct LogLineTests {
  @Test("The checksum is CRC-32C")
  func checksum() {
    func of(_ text: String) -> UInt32 { Array(text.utf8).withUnsafeBufferPointer(LogChecksum.of) }
    #expect(of("123456789") == 0xE306_9283)
    #expect(of("") == 0)
    // Thirty-two zero bytes, from RFC 3720.
    let zeros = [UInt8](repeating: 0, count: 32).withUnsafeBufferPointer(LogChecksum.of)
    #expect(zeros == 0x8A91_36AA)
    let text = Array("the quick brown fox jumps over the lazy dog".utf8)
    text.withUnsafeBufferPointer { all in
      for split in 0...all.count {
        let first = LogChecksum.of(UnsafeBufferPointer(rebasing: all[..<split]))
        let both = LogChecksum.extend(first, by: UnsafeBufferPointer(rebasing: all[split...]))
        #expect(both == LogChecksum.of(all))
        let rest = UnsafeBufferPointer(rebasing: all[split...])
        #expect(both == LogChecksum.extendByTables(first, by: rest))
      }
    }
  }

  @Test("A line looks as specified and reads back")
  func form() throws {
    var bytes: [UInt8] = []
    LogLine.append(
      sequence: 1203, kind: .set, rest: 2, synced: 1000, payload: Array(#"{"a":1}"#.utf8),
      to: &bytes)
    let text = String(decoding: bytes, as: UTF8.self)
    let crc = try #require(text.firstRange(of: #""crc":""#))
    let digits = text[crc.upperBound...].prefix(8)
    #expect(
      text == #"{"seq":1203,"kind":"set","rest":2,"synced":1000,"len":7,"crc":"\#(digits)","#
        + #""data":{"a":1}}"# + "\n")
    let outcome = bytes.withUnsafeBufferPointer { LogLine.read($0, from: 0) }
    guard case .line(let line) = outcome else {
      Issue.record("It is no line: \(outcome)")
      return
    }
    #expect(line.sequence == 1203 && line.kind == .set && line.rest == 2 && line.synced == 1000)
    #expect(Array(bytes[line.payload]) == Array(#"{"a":1}"#.utf8) && line.end == bytes.count)
  }

  @Test("Every beginning of a line is unfinished, and every changed byte is noticed")
  func everyByte() {
    var bytes: [UInt8] = []
    LogLine.append(sequence: 17, kind: .note, synced: 16, payload: payload(3), to: &bytes)
    for length in 0..<bytes.count {
      let outcome = bytes[..<length].withUnsafeBufferPointer { LogLine.read($0, from: 0) }
      guard case .unfinished = outcome else {
        Issue.record("The first \(length) bytes: \(outcome)")
        continue
      }
    }
    for position in bytes.indices {
      for mask in 1...255 {
        var changed = bytes
        changed[position] ^= UInt8(mask)
        let outcome = changed.withUnsafeBufferPointer { LogLine.read($0, from: 0) }
        if case .line = outcome { Issue.record("Byte \(position) ^ \(mask) goes unnoticed.") }
      }
    }
  }

  @Test(
    "What is not exactly a line is refused",
    arguments: [
      #"{"seq":01,"#, #"{"seq":-1,"#, #"{"seq": 1,"#, #"{"seq":1234567890123456789,"#,
      #"{"seq":1,"kind":"","#, #"{"seq":1,"kind":"Set","#, #"{"seq":,"#,
      #"{"seq":1,"kind":"set","rest":0,"synced":0,"len":2,"crc":"0A000000""#,
      #"{"seq":1,"kind":"set","rest":0,"synced":0,"len":99999999999,"crc":"00000000","data":{"#,
    ])
  func refused(_ text: String) {
    let outcome = Array(text.utf8).withUnsafeBufferPointer { LogLine.read($0, from: 0) }
    guard case .wrong = outcome else {
      Issue.record("\(text): \(outcome)")
      return
    }
  }

  @Test("Files are named by number, in one way")
  func names() {
    #expect(LogNames.segment(1) == "log-000000000001.jsonl")
    #expect(LogNames.first(ofSegment: "log-000000000101.jsonl") == 101)
    #expect(LogNames.first(ofSegment: "log-1234567890123.jsonl") == 1_234_567_890_123)
    #expect(LogNames.sequence(ofSnapshot: "snapshot-000000000000.jsonl") == 0)
    for name in ["log-1.jsonl", "log-+00000000001.jsonl", "log-000000000001.json", "log-.jsonl"] {
      #expect(LogNames.first(ofSegment: name) == nil, "\(name)")
    }
  }

  @Test("A mark reads back, and a changed one does not")
  func mark() throws {
    let disk = SimulatedDisk()
    disk.files = ["lock": LogMark(isOpen: true, durable: 4711).line]
    #expect(LogMark(disk) == LogMark(isOpen: true, durable: 4711))
    let mark = LogMark(isOpen: false, durable: 12, synced: 10, snapshot: 0)
    disk.files = ["lock": mark.line]
    #expect(LogMark(disk) == mark)
    let unsynced = LogMark(isOpen: true, durable: 12, synced: 10, unsyncedBoot: UUID())
    disk.files = ["lock": unsynced.line]
    #expect(LogMark(disk) == unsynced)
    for position in [30, 140] {
      var bytes = unsynced.line
      bytes[position] ^= 1
      disk.files = ["lock": bytes]
      #expect(LogMark(disk) == nil)
    }
    // A process may be killed before it has removed what a longer line has left.
    disk.files = ["lock": mark.line + unsynced.line[mark.line.count...]]
    #expect(LogMark(disk) == mark)
    disk.files = ["lock": mark.line.dropLast()]
    #expect(LogMark(disk) == nil)
  }

  @Test("A mark without a boot is written as by older versions, which know none")
  func olderMark() throws {
    func digits(_ number: Int) -> String {
      String(repeating: "0", count: 18) + String(number)
    }
    let none = String(repeating: "-", count: 20)
    let text =
      #"{"open": true,"durable":"\#(digits(12))","synced":"\#(digits(10))","#
      + #""snapshot":"\#(none)","crc":""#
    var bytes = Array(text.utf8)
    LogLine.append(checksum: bytes.withUnsafeBufferPointer(LogChecksum.of), to: &bytes)
    bytes += Array("\"}\n".utf8)
    let mark = LogMark(isOpen: true, durable: 12, synced: 10)
    #expect(mark.line == bytes && LogMark(bytes) == mark)
  }

  @Test("Control characters are found wherever they stand, and nothing else is taken for one")
  func controlCharacters() {
    for length in 0...20 {
      for other: UInt8 in [0x20, 0x21, 0x7F, 0x80, 0x9F, 0xA0, 0xFF] {
        var bytes = [UInt8](repeating: other, count: length)
        #expect(!LogLine.hasControlCharacters(bytes), "\(length) of \(other)")
        for place in bytes.indices {
          for control: UInt8 in [0, 1, 0x0A, 0x1F] {
            bytes[place] = control
            #expect(LogLine.hasControlCharacters(bytes), "\(control) at \(place) of \(length)")
          }
          bytes[place] = other
        }
      }
    }
  }
}
