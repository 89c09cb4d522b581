import Foundation

/// The record of payments, in place of a payment service: a file with a line `charge CALL CENTS BUYER` for each call that was
/// charged, and a line `void CALL` for each charge that was given back.
///
/// A line is on the disk before the caller goes on. It is an actor of its own, so that the server does not wait for the disk.
actor Charges {
  private let file: FileHandle
  /// The length of the file up to the end of its last line.
  private var length: UInt64
  /// The calls in the file, true for those whose charge was not voided.
  private var calls: [UUID: Bool] = [:]

  /// Opens the file, which is made if there is none.
  init(_ path: String) throws {
    if !FileManager.default.fileExists(atPath: path) {
      try Data().write(to: URL(filePath: path))
    }
    file = try FileHandle(forUpdating: URL(filePath: path))
    let text = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
    // A server that was killed may have left a part of a line.
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
    length = UInt64(lines.reduce(0) { $0 + $1.utf8.count + 1 })
    for line in lines {
      let words = line.split(separator: " ")
      if words.count > 1, let call = UUID(uuidString: String(words[1])) {
        calls[call] = words[0] == "charge"
      }
    }
  }

  /// Charges a call, once: does nothing if it was charged before.
  ///
  /// - Returns: false if the charge was voided. It cannot be charged again.
  func charge(_ call: UUID, _ cents: Int, to buyer: String) throws -> Bool {
    if let stands = calls[call] { return stands }
    try append("charge \(call) \(cents) \(buyer)\n")
    calls[call] = true
    return true
  }

  /// Gives back the charge of a call, once.
  func void(_ call: UUID) throws {
    guard calls[call] == true else { return }
    try append("void \(call)\n")
    calls[call] = false
  }

  private func append(_ line: String) throws {
    // This overwrites whatever a failed attempt has left.
    try file.truncate(atOffset: length)
    try file.write(contentsOf: Data(line.utf8))
    try file.synchronize()
    length += UInt64(line.utf8.count)
  }
}
