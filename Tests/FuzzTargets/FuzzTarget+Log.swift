import Foundation
import Jetstream
import Synchronization

extension FuzzTarget {
  /// The reader of logs: the input is a segment.
  static let log = FuzzTarget(
    "log", seeds: [segment(of: []), segment(of: [1]), segment(of: [1, 3, 2])],
    words: [
      #"{"seq":"#, #","kind":"set","rest":0"#, #","synced":"#, #","len":"#, #","crc":""#,
      #"","data":"#, "}\n", "\n", "999999999999999999", "segment", "snapshot", #""format":1"#,
    ].map { Array($0.utf8) } + [[0], [UInt8](repeating: 0, count: 512)]
  ) { bytes in
    let directory = MemoryDirectory([segmentName: bytes])
    let reader = LogReader(directory)
    var read = 0
    do throws(LogError) {
      var cursor = try reader.read()
      while try cursor.next() != nil { read += 1 }
    } catch {
      try require(!(try isWhole(reader)), "\(error), although nothing is damaged")
    }
    let log: RecordLog
    do throws(LogError) {
      log = try RecordLog(directory)
    } catch {
      // What is refused is left as it was.
      return try require(directory.files[segmentName] == bytes, "\(error), and a change")
    }
    try require(log.lastSequence == read, "\(read) read, \(log.lastSequence) opened")
    let kept = directory.files[segmentName] ?? []
    try require(
      bytes.starts(with: kept) && kept.count + log.opening.tornBytes == bytes.count,
      "\(bytes.count) bytes become \(kept.count)")
    let verification = try reader.verify()
    try require(verification.isWhole && verification.tornBytes == 0, "not whole after opening")
  }

  /// The reader of change sets.
  static let changeSets = FuzzTarget(
    "changeSets",
    seeds: [
      #"{"id":"00000000-0000-0000-0000-000000000001","author":"a","message":"m","fragments":[]}"#,
      #"{"id":"00000000-0000-0000-0000-000000000001","fragments":[{"type":"change","uuid":"#
        + #""00000000-0000-0000-0000-000000000002","clsName":"A","properties":{"x":1},"#
        + #""operations":{"n":[{"add":2}]}}],"replaced":[{"properties":{"x":0},"#
        + #""operations":{"n":[{"add":-2}]}}]}"#,
    ],
    words: jsonWords + [#""replaced":[null]"#, #""operations":{}"#, #""fragments":["#]
  ) { bytes in
    guard let json = try? JSONValue(parsing: bytes), let set = try? ChangeSet(json: json) else {
      return
    }
    var written: [UInt8] = []
    set.write(to: &written)
    try require(String(decoding: written, as: UTF8.self) == set.json.text, "two texts of one set")
    try require(try ChangeSet(json: JSONValue(parsing: written)) == set, "a set changes")
    try require(!written.contains { $0 < 0x20 }, "a set does not fit a line")
  }

  private static let segmentName = "log-000000000001.jsonl"

  private static func isWhole(_ reader: LogReader) throws -> Bool {
    do {
      return try reader.verify().isWhole
    } catch LogError.newerVersion {
      return false
    }
  }

  /// A segment of batches of these sizes.
  private static func segment(of batches: [Int]) -> [UInt8] {
    let directory = MemoryDirectory([:])
    let log = try! RecordLog(directory)
    for count in batches {
      let records = (0..<count).map { number in
        RecordContent(.set, Array(#"{"n":\#(number)}"#.utf8))
      }
      try! log.append(records).wait()
    }
    return directory.files[segmentName] ?? []
  }
}

/// Files in memory that are not lost and cannot be locked by anybody else.
private final class MemoryDirectory: LogDirectory {
  let name = "memory"
  private let stored: Mutex<[String: [UInt8]]>

  init(_ files: [String: [UInt8]]) { stored = Mutex(files) }

  var files: [String: [UInt8]] { stored.withLock { $0 } }

  func list() throws(LogFileError) -> [String] { stored.withLock { $0.keys.sorted() } }

  func open(_ file: String, for access: LogFileAccess) throws(LogFileError) -> any LogFile {
    let isThere = stored.withLock { stored in
      if access == .creating { stored[file] = [] }
      return stored[file] != nil
    }
    guard isThere else { throw LogFileError(.open, file, code: ENOENT) }
    return MemoryFile(self, file)
  }

  func rename(_ file: String, to other: String) throws(LogFileError) {
    stored.withLock { $0[other] = $0.removeValue(forKey: file) }
  }

  func remove(_ file: String) throws(LogFileError) {
    let old = stored.withLock { $0.removeValue(forKey: file) }
    if old == nil { throw LogFileError(.remove, file, code: ENOENT) }
  }

  func sync() throws(LogFileError) {}

  func lock(_ file: String) throws(LogFileError) -> (any LogFile)? {
    try open(file, for: .creating)
  }

  fileprivate func change<Result>(
    _ file: String, _ body: (inout [UInt8]) -> Result
  ) -> Result where Result: Sendable {
    stored.withLock { body(&$0[file, default: []]) }
  }
}

private final class MemoryFile: LogFile {
  private let directory: MemoryDirectory
  private let name: String

  init(_ directory: MemoryDirectory, _ name: String) {
    self.directory = directory
    self.name = name
  }

  func size() throws(LogFileError) -> Int { directory.files[name]?.count ?? 0 }

  func read(
    at offset: Int, into buffer: UnsafeMutableRawBufferPointer
  ) throws(LogFileError) -> Int {
    let rest = (directory.files[name] ?? []).dropFirst(offset).prefix(buffer.count)
    buffer.copyBytes(from: rest)
    return rest.count
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(LogFileError) -> Int {
    let new = Array(bytes)
    directory.change(name) { file in
      let end = offset + new.count
      if file.count < end { file += [UInt8](repeating: 0, count: end - file.count) }
      file.replaceSubrange(offset..<end, with: new)
    }
    return new.count
  }

  func truncate(to size: Int) throws(LogFileError) {
    directory.change(name) { $0.removeLast($0.count - size) }
  }

  func sync() throws(LogFileError) {}

  func close() {}
}
