import Foundation

/// The changes of one tick to the rows of a ``LiveQuery`` or of a ``LiveSections``, as batch updates of list views want them.
///
/// Positions are offsets in a ``LiveQuery``. In a ``LiveSections`` they are index paths of two: the offset of the
/// section, and that of the row in it. Positions before are those of the old rows, positions now those of the new ones.
/// Applied in this order to the rows before, an update gives those now:
/// 1. take out the rows at `deleted` and at the `from` of `moved`, by their positions before;
/// 2. take out the sections at `deletedSections`, by their offsets before, with the rows in them;
/// 3. put in the sections at `insertedSections`, by their offsets now, with all their rows;
/// 4. put in the rows at `inserted` and at the `to` of `moved`, by their positions now;
/// 5. show the rows at `updated` again, by their positions now.
///
/// That is what list views do, whatever the order of the calls. Of a section that goes, 1 names no row, and of one that
/// comes, 4 names none: a row that moves out of the one is in `inserted`, one that moves into the other is in `deleted`,
/// and one that does both is named by its sections alone. ``difference`` has all of them as moves.
///
/// Cost of each property: O(k log k) for k changes, each time that it is read.
public struct LiveUpdate<Model: ModelObject, Position> {
  private let change: QueryChange
  private let positions: ChangePositions<Position>

  init(_ change: QueryChange, _ positions: ChangePositions<Position>) {
    self.change = change
    self.positions = positions
  }

  /// The positions before of rows that have gone. Ascending.
  public var deleted: [Position] { positions.deleted(change) }

  /// The positions now of rows that have come. Ascending.
  public var inserted: [Position] { positions.inserted(change) }

  /// The positions before and now of rows that have moved, in the order of the latter. Rows that others
  /// have only pushed along are not among them.
  public var moved: [(from: Position, to: Position)] { positions.moved(change) }

  /// The positions now of rows that have not moved and of which something was written that the query has
  /// read. Ascending. A value that was changed and changed back counts.
  public var updated: [Position] { positions.updated(change) }

  /// All but ``updated`` as a difference: `Array(old).applying(difference)` equals the new rows, those of all sections
  /// one after the other. A row that has moved is a removal and an insertion that are associated with each other.
  public var difference: CollectionDifference<Model> { change.difference(as: Model.self) }
}

extension LiveUpdate where Position == IndexPath {
  /// The offsets before of sections that have gone. Ascending.
  public var deletedSections: [Int] { change.deletedSections }

  /// The offsets now of sections that have come. Ascending.
  public var insertedSections: [Int] { change.insertedSections }
}

/// The positions of one kind in a change.
struct ChangePositions<Position> {
  let deleted: (QueryChange) -> [Position]
  let inserted: (QueryChange) -> [Position]
  let moved: (QueryChange) -> [(from: Position, to: Position)]
  let updated: (QueryChange) -> [Position]
}

extension ChangePositions<Int> {
  static var offsets: ChangePositions {
    ChangePositions(
      deleted: { $0.removals.filter { $0.other == nil }.map(\.offset).sorted() },
      inserted: { $0.insertions.filter { $0.other == nil }.map(\.offset).sorted() },
      moved: {
        $0.insertions.compactMap { step in step.other.map { ($0, step.offset) } }
          .sorted { $0.to < $1.to }
      },
      updated: { $0.updated })
  }
}

extension ChangePositions<IndexPath> {
  static var paths: ChangePositions {
    ChangePositions(
      deleted: { $0.deleted.map(\.indexPath) },
      inserted: { $0.inserted.map(\.indexPath) },
      moved: { $0.moved.map { ($0.indexPath, $1.indexPath) } },
      updated: { $0.updatedPaths.map(\.indexPath) })
  }
}
