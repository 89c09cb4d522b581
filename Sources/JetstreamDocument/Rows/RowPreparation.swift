import Foundation

/// A change set that is made ready to be applied to a document, a part at a time.
///
/// The rows that it adds are made and written away from the document, and the new contents of collections that it changes by
/// many operations are made beside the present ones. Until ``Document/apply(_:)`` nothing in the document changes but the size
/// of its table, so that a preparation can be dropped at any time. A preparation counts on the document, and on the rows that
/// have left, to stay as they are until then: otherwise it is to be made again.
package struct RowPreparation {
  /// The steps, in their order.
  private enum Step {
    case making, writing, editing, reserving, none

    var following: Step {
      switch self {
      case .making: .writing
      case .writing: .editing
      case .editing: .reserving
      case .reserving, .none: .none
      }
    }
  }

  var writer: RowWriter
  private var next = (step: Step.making, position: 0)

  /// Begins the preparation of a change set.
  ///
  /// - Parameter known: Finds rows that have left and may come back.
  package init(
    of fragments: [SyncFragment], in document: Document, known: @escaping (UUID) -> Row?
  ) {
    writer = RowWriter(fragments, document: document, known: known)
    writer.expectAdditions()
  }

  /// True once everything is ready.
  package var isComplete: Bool { next.step == .none }

  /// The fragments of the change set.
  package var fragments: [SyncFragment] { writer.fragments }

  /// Returns a row that it adds; nil if it adds no row of this UUID, or has not made it yet.
  package func createdRow(_ uuid: UUID) -> Row? { writer.created[uuid] }

  /// The number of rows that it adds. All of them are made when the preparation is complete.
  package var createdCount: Int { writer.created.count }

  /// Goes on with the preparation. Returns true once it is complete.
  ///
  /// - Parameter take: Returns the part of the fragments, from a position on, that is to be done now. All fragments are looked
  ///   at three times.
  package mutating func advance(_ take: (Int) -> Range<Int>) -> Bool {
    while next.step != .none {
      if next.step == .reserving {
        writer.document.reserve(createdCount)
        next.step = .none
        break
      }
      let part = take(next.position)
      switch next.step {
      case .making: writer.make(part)
      case .writing: writer.writeAdditions(part)
      case .editing: for at in part { writer.prepareEdits(at) }
      case .reserving, .none: break
      }
      next.position = part.upperBound
      guard next.position == fragments.count else { return false }
      next = (next.step.following, 0)
    }
    return true
  }

  /// Makes all rows at once, of a preparation that has not begun. Reserves no room.
  mutating func finish() {
    writer.make(fragments.indices)
    writer.writeAdditions(fragments.indices)
    next.step = .none
  }
}
