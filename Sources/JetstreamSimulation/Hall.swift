import Foundation
import Jetstream

/// The root of ``SimulationWorld/hall``.
final class HallPlan: ModelObject {
  @Property var title = ""
  @Property(.counter) var edits = 0
  @Property var evenings: ModelArray<HallEvening> = []
}

/// An evening with its categories of seats.
final class HallEvening: ModelObject {
  @Property var name: String?
  @Property var categories: ModelArray<HallCategory> = []
}

/// Seats that cost the same.
final class HallCategory: ModelObject {
  @Property var price = 0
  @Property var areas: ModelArray<HallArea> = []
}

/// A part of the hall, which several categories can have.
final class HallArea: ModelObject {
  @Property var number = 0
  @Property var blocks: [Int] = []
}

extension SimulationWorld {
  /// Evenings with categories of seats, which have areas. An area moves to a category of any evening, by being inserted
  /// before it is removed, and may stay in both; evenings and categories go away with whatever areas are only in them.
  public static let hall = SimulationWorld(
    "Hall", root: HallPlan.init(uuid:),
    fill: { plan, random in
      var edits = HallEdits(plan: plan, random: random)
      for _ in 0..<4 { plan.evenings.append(edits.evening()) }
      random = edits.random
    },
    edit: { plan, _, random in
      var edits = HallEdits(plan: plan, random: random)
      defer { random = edits.random }
      return edits.any()
    })
}

/// The random edits of ``SimulationWorld/hall``.
private struct HallEdits {
  let plan: HallPlan
  var random: SimulationRandom

  /// Makes one to five random edits, and returns a description of them.
  mutating func any() -> String {
    (0..<random.number(in: 1...5)).map { _ in one() }.joined(separator: " and ")
  }

  mutating func evening() -> HallEvening {
    let evening = random.make(HallEvening.init(uuid:))
    for _ in 0..<random.number(in: 0...2) { evening.categories.append(category()) }
    return evening
  }

  private mutating func one() -> String {
    plan.edits += 1
    return switch random.number(in: 0...19) {
    case 0: name()
    case 1...3: categories()
    case 4: evenings()
    default: areas()
    }
  }

  private mutating func name() -> String {
    let number = random.number(in: 0...99)
    guard let evening = random.pick(from: plan.evenings) else {
      plan.title = "title \(number)"
      return "changes the title"
    }
    evening.name = number > 80 ? nil : "name \(number)"
    return "changes the name of \(name(evening))"
  }

  private mutating func evenings() -> String {
    "in the plan " + change(&plan.evenings, new: evening())
  }

  private mutating func categories() -> String {
    guard let evening = random.pick(from: plan.evenings) else { return "finds no evening" }
    if random.chance(0.25), let category = random.pick(from: evening.categories) {
      category.price = random.number(in: 0...99)
      return "changes the price of \(name(category))"
    }
    return "in \(name(evening)) " + change(&evening.categories, new: category())
  }

  private mutating func areas() -> String {
    guard let category = anyCategory() else { return "finds no category" }
    let area = random.pick(from: category.areas)
    switch random.number(in: 0...7) {
    case 0:
      guard let area else { return "finds no area" }
      area.blocks.append(random.number(in: 0...9))
      return "changes the blocks of \(name(area))"
    case 1:
      guard let area else { return "finds no area" }
      area.number = random.number(in: 0...999_999)
      return "changes the number of \(name(area))"
    case 2...4:
      return "in \(name(category)) " + change(&category.areas, new: self.area())
    default:
      guard let area, let target = anyCategory(), target !== category else {
        return "moves no area"
      }
      target.areas.insert(area, at: random.number(in: 0...target.areas.count))
      let stays = random.chance(0.2)
      if !stays { category.areas.remove(area) }
      return (stays ? "shares " : "moves ")
        + "\(name(area)) from \(name(category)) to \(name(target))"
    }
  }

  private mutating func anyCategory() -> HallCategory? {
    random.pick(from: plan.evenings).flatMap { random.pick(from: $0.categories) }
  }

  private mutating func category() -> HallCategory {
    let category = random.make(HallCategory.init(uuid:))
    for _ in 0..<random.number(in: 0...3) { category.areas.append(area()) }
    return category
  }

  private mutating func area() -> HallArea {
    let area = random.make(HallArea.init(uuid:))
    area.number = random.number(in: 0...99)
    return area
  }

  /// Inserts `model`, removes another one, or moves one.
  private mutating func change<Model: ModelObject>(
    _ array: inout ModelArray<Model>, new model: Model
  ) -> String {
    let last = array.count - 1
    switch random.number(in: 0...3) {
    case 2 where last > 0:
      let removed = array.remove(at: random.number(in: 0...last))
      return "removes \(name(removed))"
    case 3 where last > 0:
      let (old, new) = (random.number(in: 0...last), random.number(in: 0...last))
      array.move(from: old, to: new)
      return "moves \(old) to \(new)"
    default:
      array.insert(model, at: random.number(in: 0...array.count))
      return "inserts \(name(model))"
    }
  }

  private func name(_ model: ModelObject) -> String {
    String(model.uuid.uuidString.lowercased().prefix(8))
  }
}
