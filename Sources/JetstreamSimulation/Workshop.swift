import Foundation
import Jetstream

/// The root of ``SimulationWorld/workshop``: a board with lists of cards.
final class WorkshopBoard: ModelObject {
  @Property var title: String?
  @Property var isOpen = false
  @Property(.merge(.union)) var palette: [String: Int] = [:]
  @Property(.counter) var visits = 0
  @Property var backlog: ModelArray<WorkshopCard> = []
  @Property var active: ModelArray<WorkshopCard> = []
  @Property var done: ModelArray<WorkshopCard> = []
  @Property var pinned: WorkshopCard?
}

/// A card of the board, or a part of another card.
class WorkshopCard: ModelObject {
  @Property var text = ""
  @Property(.merge(.min)) var weight = 0.0
  @Property(.merge(.max)) var rank = 0
  @Property var color = RGBAColor.red
  @Property(.merge(.union)) var tags: [String] = []
  @Property var due: Date?
  @Property(.minSyncInterval(.milliseconds(60))) var progress: Float = 0
  @Property(.counter) var votes = 0
  @Property(.local) var isSelected = false
  @Property var parts: ModelArray<WorkshopCard> = []
  @Property var partner: WorkshopCard?
  @WeakReference var related: WorkshopCard?
}

/// A model class that only clients know: the server rejects its models.
final class WorkshopDraft: WorkshopCard {
  @Property var reason = ""
}

extension SimulationWorld {
  /// A board of cards that uses everything that models can have: values of several kinds, counters, values that
  /// are merged by rules, a throttled property, references, collections with moves between them, atomic change
  /// sets, and changes that the server rejects.
  public static let workshop = SimulationWorld(
    "Workshop", root: WorkshopBoard.init(uuid:),
    fill: { board, random in
      for _ in 0..<5 { board.backlog.append(WorkshopEdits.card(&random)) }
      board.title = "Workshop"
    },
    edit: { board, scope, random in WorkshopEdits.edit(board, scope, &random) },
    scripts: [
      "tidy": { board, scope, _ in
        scope.modifyAtomically("tidy") {
          board.active.append(contentsOf: board.backlog)
          board.backlog.removeAll()
          board.title = "Tidied"
        }
        return "moves the whole backlog at once"
      },
      "archive": { board, _, random in
        guard let card = board.done.first else { return "has nothing to archive" }
        board.done.remove(card)
        return "removes the first that is done"
      },
    ], clientModels: [WorkshopDraft.self]
  ).with(SimulatedRules.workshop).serving(
    SimulatedProcedure { random in
      WorkshopDeal(
        count: random.number(in: 0...3), card: random.chance(0.6) ? random.uuid() : nil)
    })
}
