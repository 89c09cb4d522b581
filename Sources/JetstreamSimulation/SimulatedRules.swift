import Foundation
import Jetstream
import JetstreamServer

/// Rules of a simulated server.
///
/// They depend on nothing but the change and the models around, so that a seed does the same each time. They deny about a
/// tenth of what clients do, of every kind.
enum SimulatedRules {
  static let workshop: ScopeRules = {
    var rules = ScopeRules()
    rules.create(WorkshopCard.self, "A new card has a lower rank") { _, card in card.rank != 9 }
    rules.delete(WorkshopCard.self, "This card stays") { _, card in share(of: card.uuid) != 3 }
    rules.update(\WorkshopCard.rank, "Not that rank") { _, _, new in new.rank % 5 != 4 }
    rules.update(\WorkshopCard.votes, "One at a time") { _, old, new in
      new.votes >= old.votes - 1
    }
    rules.update(\WorkshopCard.partner, "A part is no partner") { _, _, new in
      new.partner.map { $0.holders(as: WorkshopBoard.self).isEmpty } != true
    }
    rules.update(\WorkshopBoard.title, "Not that title") { _, _, new in
      new.title?.hasSuffix("7") != true
    }
    rules.insert(into: \WorkshopBoard.done, "Not done yet") { _, board, card in
      share(of: card.uuid) != 5 && board.done.count < 40
    }
    rules.remove(from: \WorkshopBoard.active, "It goes on") { _, _, card in
      share(of: card.uuid) != 7
    }
    rules.move(in: \WorkshopBoard.backlog, "It has its place") { _, _, card in
      share(of: card.uuid) != 9
    }
    rules.review { changes in
      for (index, fragment) in changes.fragments.enumerated() {
        guard case .string(let text)? = fragment.properties[revisedProperty] else { continue }
        changes.set(revisedProperty, to: .string(revised(text)), at: index)
      }
    }
    return rules
  }()

  static let garden: ScopeRules = {
    var rules = ScopeRules()
    rules.create(GardenBed.self, "There is no room") { _, bed in share(of: bed.uuid) != 1 }
    rules.delete(GardenBed.self, "This bed stays") { _, bed in share(of: bed.uuid) != 3 }
    rules.update(\GardenBed.harvest, "Too much") { _, old, new in new.harvest <= old.harvest + 3 }
    rules.update(\GardenBed.twin, "Not that twin") { _, _, new in
      new.twin.map { share(of: $0.uuid) } != 5
    }
    rules.insert(into: \GardenPlan.marks, "Not that mark") { _, plan, bed in
      share(of: bed.uuid) != 7 && plan.marks.count < 30
    }
    rules.remove(from: \GardenBed.corners, "The corner stays") { _, _, bed in
      share(of: bed.uuid) != 9
    }
    rules.remove(from: \GardenPlan.nursery, "Too young") { _, _, bed in share(of: bed.uuid) != 11 }
    rules.review { changes in
      if changes.fragments.contains(where: { $0.properties["note"] == "note 13" }) {
        throw WireError.rejected("Thirteen brings bad luck")
      }
    }
    return rules
  }()

  /// The property to which the review of the workshop's changes gives other values.
  static let revisedProperty = "text"

  /// Returns the text that the review makes of a text.
  static func revised(_ text: String) -> String { text.hasSuffix("3") ? text + "!" : text }

  /// Returns what a client has done although the rules deny it: found in what was applied, and its inverse.
  static func violations(in changes: RemoteChanges) -> [String] {
    guard let undo = changes.inverse.value?.undo else { return [] }
    var problems: [String] = []
    for fragment in undo where fragment.kind == .add && share(of: fragment.uuid) == 3 {
      problems.append("a client has deleted \(fragment.className) \(fragment.uuid.wireText)")
    }
    for fragment in changes.fragments where fragment.className == "WorkshopBoard" {
      guard case .string(let title)? = fragment.properties["title"], title.hasSuffix("7"),
        undo.contains(where: {
          $0.uuid == fragment.uuid && $0.properties["title"] != .string(title)
        })
      else { continue }
      problems.append("a client has called the board \(title)")
    }
    return problems
  }

  /// Returns one of sixteen shares of all models, of which a model is one.
  private static func share(of uuid: UUID) -> UInt8 { uuid.uuid.15 & 15 }
}

extension SimulationWorld {
  /// Returns the world with rules for its server.
  func with(_ rules: ScopeRules) -> SimulationWorld {
    var result = self
    result.rules = rules
    return result
  }
}
