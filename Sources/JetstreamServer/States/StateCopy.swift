import Foundation
import Jetstream

/// Some models of a full state, which are sent in one message.
final class StatePart {
  let fragments: [SyncFragment]
  /// The number of bytes on the wire, approximately.
  let bytes: Int
  /// The JSON text, once it was made.
  private(set) var text: FragmentsText?
  /// True while the text waits to be made away from the server's actor.
  private(set) var isBeingEncoded = false

  init(_ fragments: [SyncFragment]) {
    self.fragments = fragments
    bytes = fragments.roughSize
  }

  /// Joins other parts. Has the text alone, since a copy of the fragments costs as much as one of the text. Cost: O(size of
  /// the parts).
  init(joining parts: [StatePart]) {
    fragments = []
    bytes = parts.reduce(0) { $0 + $1.bytes }
    text = FragmentsText(joining: parts.map { $0.ensureText() })
  }

  /// Notes that the text is made away from the server's actor.
  func awaitText() { isBeingEncoded = true }

  /// Takes the text that was made away from the server's actor.
  func take(_ text: FragmentsText) { (self.text, isBeingEncoded) = (text, false) }

  /// Returns the text. Makes it unless it is there. Cost: O(``bytes``) the first time.
  func ensureText() -> FragmentsText {
    if let text { return text }
    let made = FragmentsText(fragments)
    text = made
    return made
  }
}

/// The full state of a scope at one sequence, in the parts in which sessions are sent it. It never changes. All sessions
/// that begin at its sequence share it.
final class StateCopy {
  let sequence: Int
  let parts: [StatePart]
  let root: UUID

  /// - Parameter parts: at least one; the first begins with the root.
  init(sequence: Int, root: UUID, parts: [StatePart]) {
    (self.sequence, self.root, self.parts) = (sequence, root, parts)
  }

  /// Returns the same state in one part. Cost: O(size of the state), to copy its texts.
  func joined() -> StateCopy {
    if parts.count == 1 { return self }
    return StateCopy(sequence: sequence, root: root, parts: [StatePart(joining: parts)])
  }

  /// Returns the message with one part.
  func message(_ number: Int, scopeIndex: Int) -> ScopeState {
    let part = parts[number]
    var message = ScopeState(scopeIndex: scopeIndex, rootUUID: root, fragments: part.fragments)
    message.text = part.ensureText()
    message.more = number + 1 < parts.count
    return message
  }
}
