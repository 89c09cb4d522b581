import Foundation
import Jetstream

/// The full state of a scope at one sequence, in the parts in which sessions are sent it. All sessions share it, and each
/// part is encoded once.
final class StateCopy {
  /// The models of one message.
  private final class Part {
    let fragments: [SyncFragment]
    private(set) lazy var text = FragmentsText(fragments)

    init(_ fragments: [SyncFragment]) { self.fragments = fragments }
  }

  let sequence: Int
  private let root: UUID
  private let parts: [Part]
  private lazy var whole =
    parts.count == 1 ? parts[0] : Part(Array(parts.map(\.fragments).joined()))
  /// The time at which a session has last begun with it.
  var usedAt = Duration.zero

  /// - Parameter bytes: the approximate size of a part, which has at least one model.
  init(sequence: Int, root: UUID, fragments: [SyncFragment], bytes: Int) {
    (self.sequence, self.root) = (sequence, root)
    var parts: [Part] = []
    var (start, size) = (0, 0)
    for (at, fragment) in fragments.enumerated() {
      let more = fragment.roughSize
      if at > start, size + more > bytes {
        parts.append(Part(Array(fragments[start..<at])))
        (start, size) = (at, 0)
      }
      size += more
    }
    parts.append(Part(Array(fragments[start...])))
    self.parts = parts
  }

  /// The number of messages that the state takes.
  var count: Int { parts.count }

  /// Returns the message with one part.
  func message(_ number: Int, scopeIndex: Int) -> ScopeState {
    var message = message(of: parts[number], scopeIndex)
    message.more = number + 1 < parts.count
    return message
  }

  /// Returns the message for a session of version 1, whose protocol has no parts.
  func wholeMessage(scopeIndex: Int) -> ScopeState { message(of: whole, scopeIndex) }

  private func message(of part: Part, _ scopeIndex: Int) -> ScopeState {
    var message = ScopeState(scopeIndex: scopeIndex, rootUUID: root, fragments: part.fragments)
    message.text = part.text
    return message
  }
}
