/// The JSON text of the fragments of a message, written once for all the messages that carry them.
///
/// It says nothing that the fragments do not say: a message is equal to one without it.
package struct FragmentsText: Sendable, Hashable {
  package let bytes: [UInt8]
  /// The checksum that tells change sets with the same number apart: that of the fragments one behind the other, without
  /// what is between them. Nil if it was not calculated.
  package let checksum: UInt32?

  /// True if one more copy costs next to nothing.
  package var isShort: Bool { bytes.count < 4096 }

  package init(_ fragments: [SyncFragment]) {
    var output = JSONOutput()
    output.put(fragments)
    bytes = Array(output.bytes)
    checksum = nil
  }

  /// Takes the text of fragments that was written before.
  package init(writtenAs text: [UInt8]) { (bytes, checksum) = (text, nil) }

  /// Writes the text, and calculates the checksum.
  package init(checksumming fragments: [SyncFragment]) {
    var checksum: UInt32 = 0
    var output = JSONOutput()
    output.append("[")
    // They are read where they stand: each copy would be retained field by field.
    let fragments = fragments.span
    for place in fragments.indices {
      if place > 0 { output.append(",") }
      let start = output.count
      fragments[place].write(to: &output)
      checksum = LogChecksum.extend(
        checksum, by: UnsafeBufferPointer(rebasing: output.bytes[start...]))
    }
    output.append("]")
    bytes = Array(output.bytes)
    self.checksum = checksum
  }

  /// Takes the text of one fragment, in brackets, as it was written in this way, and calculates the checksum.
  init(ofOne text: UnsafeBufferPointer<UInt8>) {
    bytes = Array(text)
    checksum = LogChecksum.extend(
      0, by: UnsafeBufferPointer(rebasing: text[1..<text.count - 1]))
  }

  /// Returns the checksum of the change set that has these fragments, and the arguments of a call behind them.
  package func checksum(with arguments: JSONValue?) -> UInt32 {
    let checksum = checksum ?? 0
    guard let arguments else { return checksum }
    var bytes: [UInt8] = []
    arguments.write(to: &bytes)
    return bytes.withUnsafeBufferPointer { LogChecksum.extend(checksum, by: $0) }
  }

  /// Joins texts to that of all their fragments, in order.
  package init(joining texts: [FragmentsText]) {
    var joined: [UInt8] = []
    joined.reserveCapacity(texts.reduce(2) { $0 + $1.bytes.count })
    for text in texts where text.bytes.count > 2 {
      joined.append(UInt8(ascii: joined.isEmpty ? "[" : ","))
      joined += text.bytes[1..<text.bytes.count - 1]
    }
    if joined.isEmpty { joined.append(UInt8(ascii: "[")) }
    joined.append(UInt8(ascii: "]"))
    bytes = joined
    checksum = nil
  }

  package static func == (_: FragmentsText, _: FragmentsText) -> Bool { true }

  package func hash(into hasher: inout Hasher) {}
}
