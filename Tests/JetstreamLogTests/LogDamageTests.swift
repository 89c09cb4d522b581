import Foundation
import JetstreamSimulation
import Testing

@testable import Jetstream

@Suite("Damage and torn tails", .paced)
struct LogDamageTests {
  /// A log of records 1...`count` in one segment, appended in groups of three.
  private func files(_ count: Int, segmentBytes: Int = 1 << 20) throws -> [String: [UInt8]] {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, .init(segmentBytes: segmentBytes))
    for first in stride(from: 1, through: count, by: 3) {
      try log.write(first...min(first + 2, count))
    }
    try log.close()
    var files = disk.files
    files["lock"] = nil
    return files
  }

  private let name = LogNames.segment(1)

  @Test("A log cut at any byte loses the records that are incomplete, and says how many bytes")
  func everyCut() throws {
    let bytes = try #require(try files(5)[name])
    let ends = bytes.indices.filter { bytes[$0] == UInt8(ascii: "\n") }.map { $0 + 1 }
    for length in ends[0]...bytes.count {
      let disk = SimulatedDisk()
      disk.files = [name: Array(bytes[..<length])]
      let whole = ends.lastIndex { $0 <= length } ?? 0
      #expect(try LogReader(disk).verify().tornBytes == length - ends[whole])
      let log = try SimulatedLog(disk)
      #expect(log.log.opening.tornBytes == length - ends[whole], "cut at \(length)")
      #expect(numbers(try LogReader(disk).all()) == Array(1..<(whole + 1)))
      try log.write((whole + 1)...9)
      #expect(numbers(try LogReader(disk).all()) == Array(1...9))
    }
    // A segment is there with its header or not at all.
    for length in 0..<ends[0] {
      let disk = SimulatedDisk()
      disk.files = [name: Array(bytes[..<length])]
      #expect(throws: LogError.self, "cut at \(length)") { try SimulatedLog(disk) }
    }
  }

  @Test("A complete record with a wrong byte is damage also where it is the last, and says where")
  func lastRecord() throws {
    var bytes = try #require(try files(10)[name])
    let start = try #require(bytes.dropLast().lastIndex(of: UInt8(ascii: "\n"))) + 1
    bytes[start + 100] ^= 1
    let disk = SimulatedDisk()
    disk.files = [name: bytes]
    let damage = LogDamage(
      "its checksum is wrong", file: name, offset: start, sequence: 10, readable: 1...9)
    #expect(throws: LogError.damaged(damage)) { try SimulatedLog(disk) }
    #expect(disk.files[name] == bytes)
    #expect(
      LogError.damaged(damage).description
        == "The log is damaged: log-000000000001.jsonl, byte \(start), record 10: its checksum is "
        + "wrong; records 1 to 9 can be read.")
    // Up to the damage, it is read.
    var cursor = try LogReader(disk).read()
    var read: [LogRecord] = []
    #expect(throws: LogError.damaged(damage)) {
      while let record = try cursor.next() { read.append(record) }
    }
    #expect(numbers(read) == Array(1...9))
    #expect(try LogReader(disk).verify().damage == [damage])
  }

  @Test("Missing sectors are a torn tail as long as nobody says that they were synced")
  func holes() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk)
    try log.write(1...3)
    let synced = try #require(disk.files[name]).count
    for number in 4...40 { try log.log.append(.note, payload(number)) }
    log.drain()
    let bytes = try #require(disk.files[name])
    let sectors = stride(from: 0, to: bytes.count, by: 512).map { $0..<min($0 + 512, bytes.count) }
    for sector in sectors where sector.lowerBound >= synced {
      for start in [sector.lowerBound, sector.lowerBound + 100] where start < sector.upperBound {
        var torn = bytes
        for position in start..<sector.upperBound { torn[position] = 0 }
        let disk = SimulatedDisk()
        disk.files = [name: torn]
        let again = try SimulatedLog(disk)
        #expect(again.log.opening.tornBytes > 0)
        let read = numbers(try LogReader(disk).all())
        #expect(read.count >= 3 && read == Array(1..<(read.count + 1)))
      }
    }
    // The first three records were synced before the others were written, which say so.
    let old = try #require(sectors.first { $0.lowerBound > 0 })
    #expect(old.lowerBound < synced)
    var damaged = bytes
    for position in old.lowerBound..<min(old.upperBound, synced) { damaged[position] = 0 }
    disk.files = [name: damaged]
    #expect(throws: LogError.self) { try SimulatedLog(disk) }
  }

  @Test("A segment that another one follows has to be complete")
  func closedSegment() throws {
    let files = try files(60, segmentBytes: 1000)
    let names = files.keys.sorted()
    #expect(names.count > 4)
    for name in names.dropLast() {
      let disk = SimulatedDisk()
      var torn = files
      torn[name]?.removeLast(20)
      disk.files = torn
      #expect(throws: LogError.self) { try SimulatedLog(disk) }
      torn[name] = nil
      disk.files = torn
      #expect(throws: LogError.self, "without \(name)") { try SimulatedLog(disk) }
      #expect(try !LogReader(disk).verify().isWhole)
    }
  }

  @Test("A segment that is cut hides nothing of what is before and behind it")
  func cutSegment() throws {
    let files = try files(20, segmentBytes: 500)
    let disk = SimulatedDisk()
    disk.files = files
    let segments = try LogFiles(disk).segments
    #expect(segments.count > 3)
    for (position, first) in segments.dropLast().enumerated() {
      let name = LogNames.segment(first)
      let bytes = try #require(files[name])
      let ends = bytes.indices.filter { bytes[$0] == UInt8(ascii: "\n") }.map { $0 + 1 }
      for length in [0, 30, ends[0], ends[0] + 20, ends[1], ends[1] + 30] {
        disk.files = files
        disk.files[name] = Array(bytes[..<length])
        let verification = try LogReader(disk).verify()
        #expect(verification.segments == segments.count)
        #expect(verification.damage.map(\.file) == [name], "\(name) cut at \(length)")
        let left = ends.dropFirst().count { $0 <= length }
        let readable = [1..<(first + left), segments[position + 1]..<21].filter { !$0.isEmpty }
        #expect(verification.readable.map(Range.init) == readable, "\(name) cut at \(length)")
        #expect(verification.records == (readable.count > 1 ? verification.readable[0] : nil))
        // What opens the log, and what reads it, say the same of it.
        let damage = try #require(verification.damage.first)
        #expect(throws: LogError.damaged(damage)) { try SimulatedLog(disk) }
        #expect(throws: LogError.self) { try LogReader(disk).all() }
      }
    }
  }

  @Test("Damage in several places is told at once, with what is whole in between")
  func manyPlaces() throws {
    var files = try files(40, segmentBytes: 500)
    let disk = SimulatedDisk()
    disk.files = files
    let segments = try LogFiles(disk).segments
    #expect(segments.count > 6)
    // A header, a segment that is not there, and a line.
    files[LogNames.segment(segments[1])]![20] ^= 1
    files[LogNames.segment(segments[3])] = nil
    let last = LogNames.segment(segments.last!)
    files[last]![files[last]!.count - 20] ^= 1
    disk.files = files
    let verification = try LogReader(disk).verify()
    #expect(
      verification.damage.map(\.file)
        == [LogNames.segment(segments[1]), LogNames.segment(segments[4]), last])
    let lost = try #require(verification.damage.last).sequence
    #expect(
      verification.readable == [
        1...(segments[1] - 1), segments[2]...(segments[3] - 1), segments[4]...(lost - 1),
      ])
  }

  @Test("Lines of equal length that have changed places are noticed, as is one that is there twice")
  func places() throws {
    let bytes = try #require(try files(9)[name])
    let lines = bytes.split(separator: UInt8(ascii: "\n")).map { Array($0) + [UInt8(ascii: "\n")] }
    for order in [[0, 1, 3, 2, 4, 5, 6, 7, 8, 9], [0, 1, 2, 2, 3], [0, 2, 3], [1, 2]] {
      let disk = SimulatedDisk()
      disk.files = [name: order.flatMap { lines[$0] }]
      #expect(try !LogReader(disk).verify().isWhole, "\(order)")
      #expect(throws: LogError.self) { try SimulatedLog(disk) }
    }
  }

  /// `JETSTREAM_LOG_FLIPS=all` changes every byte of every file; a number, so many.
  @Test("Every single byte that changes in a log of 1,000 sets is noticed")
  func everyByte() throws {
    let setting = count("JETSTREAM_LOG_FLIPS", default: 150)
    let isAll = ProcessInfo.processInfo.environment["JETSTREAM_LOG_FLIPS"] == "all"
    let whole = SimulatedDisk()
    // Most changes take the time for their segment, those of headers take the time for the whole log.
    let log = try SimulatedLog(whole, .init(segmentBytes: isAll ? 10_000 : 30_000))
    for number in 1...1000 {
      try log.log.append(.set, Self.changeSet(number))
      if number % 10 == 0 { log.drain() }
      if number == 400 { try log.snapshot() }
    }
    try log.close()
    var files = whole.files
    files["lock"] = nil
    let bytes = files.sorted { $0.key < $1.key }.flatMap { name, bytes in
      bytes.indices.map { (name, $0) }
    }
    let firsts = files.keys.compactMap { LogNames.first(ofSegment: $0) }.sorted()
    let catalog = try LogCatalog(whole, LogFiles(whole))
    let headers = files.mapValues { $0.firstIndex(of: UInt8(ascii: "\n")) ?? 0 }
    var random = SeededGenerator(seed: 5)
    var torn = 0
    var checked = 0
    let disk = SimulatedDisk()
    disk.files = files
    for number in 0..<(isAll ? bytes.count : setting) {
      let (name, position) = isAll ? bytes[number] : bytes.randomElement(using: &random)!
      let mask =
        number.isMultiple(of: 2)
        ? 1 << UInt8(number / 2 % 8) : UInt8.random(in: 1...255, using: &random)
      disk.flip(name, at: position, mask: mask)
      defer { disk.flip(name, at: position, mask: mask) }
      checked += 1
      if isAll, let first = LogNames.first(ofSegment: name), position > headers[name]! {
        // What checking everything does with this segment; the others are as they were.
        let end = catalog.end(ofSegment: firsts.firstIndex(of: first)!)
        var scan = try SegmentScan(disk, first: first, end: end)
        do throws(LogError) {
          while try scan.batch() != nil {}
          if scan.tornBytes > 0 { torn += 1 }
          #expect(scan.tornBytes > 0, "\(name), byte \(position) ^ \(mask) goes unnoticed.")
        } catch {
          guard case .damaged = error else { throw error }
        }
        continue
      }
      let verification = try LogReader(disk).verify()
      if verification.tornBytes > 0 { torn += 1 }
      #expect(
        !verification.isWhole || verification.tornBytes > 0,
        "\(name), byte \(position) ^ \(mask) goes unnoticed.")
    }
    #expect(disk.files == files)
    print("\(files.count) files, \(bytes.count) bytes: \(checked) changes, \(torn) a torn tail")
    #expect(checked > 0 && torn * 20 <= checked)
  }

  @Test("Every character that changes in the name of a file is noticed")
  func names() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, .init(segmentBytes: 1000))
    for number in 1...30 { try log.write(number...number) }
    try log.snapshot()
    try log.write(31...40)
    try log.close()
    var files = disk.files
    files["lock"] = nil
    for name in files.keys {
      for position in name.utf8.indices {
        for mask in [UInt8(1), 2, 4, 8, 16, 32, 64] {
          var characters = Array(name.utf8)
          characters[name.utf8.distance(from: name.startIndex, to: position)] ^= mask
          let other = String(decoding: characters, as: UTF8.self)
          var changed = files
          changed[other] = changed.removeValue(forKey: name)
          let disk = SimulatedDisk()
          disk.files = changed
          #expect(try !LogReader(disk).verify().isWhole, "\(name) is called \(other)")
        }
      }
    }
  }

  @Test(
    "A name with a number that no record has is not one of the log",
    arguments: [
      "snapshot-9223372036854775807", "log-9223372036854775807", "log--9223372036854775808",
    ]
  )
  func hugeNumber(name: String) throws {
    let name = name + ".jsonl"
    let disk = SimulatedDisk()
    disk.files = [name: Array("x".utf8)]
    #expect(try LogReader(disk).firstSequence() == nil)
    #expect(try LogReader(disk).verify().isWhole)
    let log = try SimulatedLog(disk)
    #expect(log.log.opening.isNew)
    try log.write(1...3)
    try log.close()
    #expect(try LogReader(disk).verify().isWhole)
    // With the content of a segment it is one that was renamed.
    disk.files[name] = disk.files[LogNames.segment(1)]
    #expect(try LogReader(disk).verify().damage.map(\.file) == [name])
    #expect(throws: LogError.self) { try SimulatedLog(disk) }
  }

  /// A set as a drag gives it.
  private static func changeSet(_ number: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    var random = SeededGenerator(seed: UInt64(number))
    let uuid = UUID(pair: random.next(), random.next())
    ChangeSet(
      id: UUID(pair: random.next(), random.next()),
      fragments: [
        SyncFragment(
          .change, uuid: uuid, className: "Shape",
          properties: ["x": .integer(Int64(number)), "y": 0.5])
      ], bases: [uuid: ["x": .integer(Int64(number - 1)), "y": 0.25]]
    ).write(to: &bytes)
    return bytes
  }
}
