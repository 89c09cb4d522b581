import Foundation
import Jetstream

/// Edits a catalogue at random: the same seed on the same catalogue makes the same edits.
struct RandomEditor {
  let catalogue: Catalogue
  private let journal = Journal()
  private var generator: SeededGenerator
  /// How many edits were made.
  private(set) var count = 0
  /// The edits that were noted in the journal.
  private(set) var noted: [Int] = []

  init(catalogue: Catalogue, author: String, seed: UInt64) {
    self.catalogue = catalogue
    generator = SeededGenerator(seed: seed)
    journal.author = author
  }

  /// Makes one edit, and writes its number into the journal, which belongs to this editor alone.
  mutating func edit() {
    if count == 0 { catalogue.journals.append(journal) }
    count += 1
    journal.lastEdit = count
    catalogue.edits += 1
    switch roll(100) {
    case 0..<10: note()
    case 10..<30: editPerformance()
    case 30..<40: editEvent()
    case 40..<52: editPrices()
    case 52..<64: editSeatCategories()
    case 64..<90: editAreas()
    case 90..<95: editPerformances()
    default: editEvents()
    }
  }

  /// How many more edits should be made before the others get a turn.
  mutating func batch() -> Int { 1 + roll(5) }

  /// Whether the edits of a batch become a change set at once instead of at the next tick.
  mutating func wantsFlush() -> Bool { roll(8) == 0 }

  private mutating func note() {
    let note = Note()
    note.edit = count
    journal.notes.append(note)
    noted.append(count)
  }

  // MARK: Values

  private mutating func editPerformance() {
    guard let performance = performance() else { return }
    switch roll(6) {
    case 0: performance.eventId = roll(1_000_000)
    case 1: performance.start += TimeInterval(roll(100_000)) / 8
    case 2: performance.venueCode = text()
    case 3: performance.logo = optionalText()
    case 4: performance.name = optionalText()
    default: performance.seatMapImage = optionalText()
    }
  }

  private mutating func editEvent() {
    guard let event = catalogue.events.randomElement(using: &generator) else { return }
    switch roll(7) {
    case 0: event.name = optionalText()
    case 1: event.description = optionalText()
    case 2: event.logo = optionalText()
    case 3: event.subtitle = optionalText()
    case 4: event.subjectCode = optionalText()
    case 5: change(&event.topicIds)
    default: change(&event.subTopicIds)
    }
  }

  private mutating func change(_ numbers: inout [Int]) {
    switch roll(3) {
    case 0: numbers.append(roll(1000))
    case 1: if !numbers.isEmpty { numbers.remove(at: roll(numbers.count)) }
    default: numbers.shuffle(using: &generator)
    }
  }

  // MARK: Collections

  private mutating func editPrices() {
    guard let performance = performance() else { return }
    if let price = performance.prices.randomElement(using: &generator), roll(3) > 0 {
      price.amount += 50 * (1 + roll(100))
    } else {
      let price = Price()
      price.amount = 1000 + roll(100_000)
      price.seatCategoryId = count
      change(&performance.prices, new: price)
    }
  }

  private mutating func editSeatCategories() {
    guard let performance = performance() else { return }
    if let category = performance.seatCategories.randomElement(using: &generator), roll(4) == 0 {
      category.seatCategoryId = roll(1_000_000)
    } else {
      change(&performance.seatCategories, new: category())
    }
  }

  private mutating func editAreas() {
    guard let performance = performance(),
      let category = performance.seatCategories.randomElement(using: &generator)
    else { return }
    let area = category.areas.randomElement(using: &generator)
    switch roll(8) {
    case 0: if let area { change(&area.blockIds) }
    case 1: area?.areaId = roll(1_000_000)
    case 2, 3, 4: change(&category.areas, new: self.area())
    default:
      // To another category, often of another performance; sometimes it stays in both.
      guard let area,
        let target = self.performance()?.seatCategories.randomElement(using: &generator),
        target !== category
      else { return }
      target.areas.insert(area, at: roll(target.areas.count + 1))
      if roll(5) > 0 { category.areas.remove(area) }
    }
  }

  private mutating func editPerformances() {
    let performance = Performance()
    performance.id = count
    performance.venueCode = text()
    performance.start = Date(timeIntervalSince1970: TimeInterval(roll(1_000_000_000)))
    for _ in 0..<roll(3) { performance.prices.append(Price()) }
    for _ in 0..<roll(3) { performance.seatCategories.append(category()) }
    change(&catalogue.performances, new: performance)
  }

  private mutating func editEvents() {
    let event = Event()
    event.id = count
    event.name = text()
    change(&catalogue.events, new: event)
  }

  /// Inserts `model`, removes another one, or moves one.
  private mutating func change<Model>(_ array: inout ModelArray<Model>, new model: Model) {
    switch roll(4) {
    case 0: array.append(model)
    case 1: array.insert(model, at: roll(array.count + 1))
    case 2: if array.count > 1 { array.remove(at: roll(array.count)) }
    default: if array.count > 1 { array.move(from: roll(array.count), to: roll(array.count)) }
    }
  }

  private mutating func category() -> SeatCategory {
    let category = SeatCategory()
    category.seatCategoryId = count
    for _ in 0..<roll(4) { category.areas.append(area()) }
    return category
  }

  private mutating func area() -> Area {
    let area = Area()
    area.areaId = count
    area.blockIds = (0..<roll(4)).map { _ in roll(1000) }
    return area
  }

  // MARK: Chance

  /// One of the first few most of the time, so that the editors get into each other's way.
  private mutating func performance() -> Performance? {
    let count = catalogue.performances.count
    if count == 0 { return nil }
    return catalogue.performances[roll(roll(4) > 0 ? min(count, 10) : count)]
  }

  private mutating func roll(_ count: Int) -> Int { Int.random(in: 0..<count, using: &generator) }

  private mutating func text() -> String { "\(journal.author) \(count) é\u{1F3BB}\n" }

  private mutating func optionalText() -> String? { roll(4) == 0 ? nil : text() }
}

/// A generator that gives the same numbers for the same seed (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
