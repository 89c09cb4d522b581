/// The JSON text of the fragments of a message, written once for all the messages that carry them.
///
/// It says nothing that the fragments do not say: a message is equal to one without it.
package struct FragmentsText: Sendable, Hashable {
  let bytes: [UInt8]

  /// True if one more copy costs next to nothing.
  var isShort: Bool { bytes.count < 4096 }

  package init(_ fragments: [SyncFragment]) {
    var output = JSONOutput()
    output.put(fragments)
    bytes = Array(output.bytes)
  }

  package static func == (_: FragmentsText, _: FragmentsText) -> Bool { true }

  package func hash(into hasher: inout Hasher) {}
}
