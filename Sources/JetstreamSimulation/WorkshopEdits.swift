import Foundation
import Jetstream

/// The random edits of ``SimulationWorld/workshop``.
enum WorkshopEdits {
  typealias List = ReferenceWritableKeyPath<WorkshopBoard, ModelArray<WorkshopCard>>

  private static var lists: [(name: String, path: List)] {
    [("the backlog", \.backlog), ("what is active", \.active), ("what is done", \.done)]
  }

  static func card(_ random: inout SimulationRandom) -> WorkshopCard {
    let card = random.make(WorkshopCard.init(uuid:))
    card.text = "card \(random.number(in: 0...999))"
    card.rank = random.number(in: 0...9)
    return card
  }

  static func edit(
    _ board: WorkshopBoard, _ scope: Scope, _ random: inout SimulationRandom
  ) -> String {
    switch random.number(in: 0...19) {
    case 0...6: value(board, &random)
    case 7, 8: count(board, &random)
    case 9...15: structure(board, &random)
    case 16: together(board, scope, &random)
    case 17: draft(board, &random)
    default: reference(board, &random)
    }
  }

  private static func anyCard(
    _ board: WorkshopBoard, _ random: inout SimulationRandom
  ) -> WorkshopCard? {
    let cards =
      Array(board.backlog) + Array(board.active) + Array(board.done)
      + [board.pinned].compactMap(\.self)
    guard let card = random.pick(from: cards) else { return nil }
    return random.chance(0.3) ? random.pick(from: card.parts) ?? card : card
  }

  private static func name(_ card: WorkshopCard) -> String {
    String(card.uuid.uuidString.lowercased().prefix(8))
  }

  private static func value(_ board: WorkshopBoard, _ random: inout SimulationRandom) -> String {
    let number = random.number(in: 0...99)
    guard random.chance(0.8), let card = anyCard(board, &random) else {
      switch number % 3 {
      case 0: board.title = number > 80 ? nil : "title \(number)"
      case 1: board.isOpen.toggle()
      default: board.palette["colour \(number % 4)"] = number > 70 ? nil : number
      }
      return "changes a value of the board (\(number))"
    }
    switch random.number(in: 0...7) {
    case 0: card.text = "text \(number)"
    case 1: card.weight = Double(number) / 8
    case 2: card.rank = number
    case 3: card.color = RGBAColor(red: 255, green: UInt8(number), blue: 0, alpha: 255)
    case 4: card.tags = (0..<number % 4).map { "tag \($0)" }
    case 5: card.due = number > 80 ? nil : Date(timeIntervalSince1970: Double(number))
    case 6: card.progress = Float(number) / 4
    default: card.isSelected.toggle()
    }
    return "changes a value of \(name(card)) (\(number))"
  }

  private static func count(_ board: WorkshopBoard, _ random: inout SimulationRandom) -> String {
    let step = random.number(in: -2...5)
    guard random.chance(0.6), let card = anyCard(board, &random) else {
      board.visits += step
      return "adds \(step) to the visits"
    }
    card.votes += step
    return "adds \(step) to the votes of \(name(card))"
  }

  private static func structure(
    _ board: WorkshopBoard, _ random: inout SimulationRandom
  ) -> String {
    let (from, to) = (random.pick(from: lists)!, random.pick(from: lists)!)
    let count = board[keyPath: from.path].count
    let place = random.number(in: 0...count)
    switch random.number(in: 0...7) {
    case 0, 1:
      let new = card(&random)
      board[keyPath: from.path].insert(new, at: place)
      return "inserts \(name(new)) at \(place) of \(from.name)"
    case 2:
      let new = card(&random)
      board[keyPath: from.path].append(new)
      return "appends \(name(new)) to \(from.name)"
    case 3:
      guard let card = random.pick(from: board[keyPath: from.path]) else {
        return "removes nothing"
      }
      board[keyPath: from.path].remove(card)
      return "removes \(name(card)) from \(from.name)"
    case 4:
      guard count > 1 else { return "moves nothing" }
      let (old, new) = (random.number(in: 0...count - 1), random.number(in: 0...count - 1))
      board[keyPath: from.path].move(from: old, to: new)
      return "moves \(old) to \(new) in \(from.name)"
    case 5, 6:
      guard let card = random.pick(from: board[keyPath: from.path]) else { return "moves nothing" }
      board[keyPath: from.path].remove(card)
      let target = random.number(in: 0...board[keyPath: to.path].count)
      board[keyPath: to.path].insert(card, at: target)
      return "moves \(name(card)) from \(from.name) to \(target) of \(to.name)"
    default:
      guard let whole = anyCard(board, &random) else { return "adds no part" }
      let part = random.chance(0.7) ? card(&random) : anyCard(board, &random)!
      guard part !== whole else { return "adds no part" }
      whole.parts.append(part)
      return "adds \(name(part)) to the parts of \(name(whole))"
    }
  }

  private static func together(
    _ board: WorkshopBoard, _ scope: Scope, _ random: inout SimulationRandom
  ) -> String {
    var words: [String] = []
    scope.modifyAtomically("several") {
      for _ in 0..<random.number(in: 1...3) {
        words.append(random.chance(0.5) ? value(board, &random) : structure(board, &random))
      }
      if random.chance(0.2) { words.append(draft(board, &random)) }
    }
    return words.joined(separator: " and ") + ", at once"
  }

  private static func draft(_ board: WorkshopBoard, _ random: inout SimulationRandom) -> String {
    // The server would not reject what it makes itself.
    guard board.scope?.schema(named: "WorkshopDraft") != nil else { return value(board, &random) }
    let draft = random.make(WorkshopDraft.init(uuid:))
    draft.reason = "draft"
    let list = random.pick(from: lists)!
    board[keyPath: list.path].append(draft)
    return "appends the draft \(name(draft)) to \(list.name)"
  }

  private static func reference(
    _ board: WorkshopBoard, _ random: inout SimulationRandom
  ) -> String {
    let target = anyCard(board, &random)
    guard random.chance(0.6), let card = anyCard(board, &random) else {
      board.pinned = random.chance(0.6) ? target : random.chance(0.5) ? card(&random) : nil
      return "pins \(board.pinned.map(name) ?? "nothing")"
    }
    if random.chance(0.5) {
      card.related = target
      return "relates \(name(card)) to \(target.map(name) ?? "nothing")"
    }
    card.partner = random.chance(0.3) ? nil : target === card ? nil : target
    return "makes \(card.partner.map(name) ?? "nothing") the partner of \(name(card))"
  }
}
