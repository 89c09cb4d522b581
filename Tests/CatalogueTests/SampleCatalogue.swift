import Foundation

@testable import catalogue

/// A made-up catalogue of the form that is imported, for tests that need no real one.
///
/// It has the proportions of the real one: some prices and seat categories for each performance, most areas of the hall
/// in each category, and texts with accents. A seed and a size always lead to the same bytes.
struct SampleCatalogue {
  private var generator: SeededGenerator
  private var lastID = 100_000_000
  private let areas: [Int]
  private let categories: [Int]
  private let topics: [Int: [Int]]
  private let audience: Int

  private init(seed: UInt64) {
    var id = 200_000_000
    func ids(_ count: Int) -> [Int] {
      defer { id += count }
      return Array(id..<id + count)
    }
    generator = SeededGenerator(seed: seed)
    areas = ids(17)
    categories = ids(64)
    topics = Dictionary(uniqueKeysWithValues: ids(4).map { ($0, ids(5)) })
    audience = ids(1)[0]
  }

  /// The catalogue as JSON, about 7 KB for each performance.
  static func json(performances count: Int, seed: UInt64 = 1) throws -> Data {
    var sample = SampleCatalogue(seed: seed)
    return try JSONSerialization.data(
      withJSONObject: sample.catalogue(performances: count), options: .sortedKeys)
  }

  private mutating func catalogue(performances count: Int) -> [String: Any] {
    let events = (0..<max(1, count * 3 / 4)).map { _ in event() }
    let ids = events.compactMap { $0["id"] as? Int }
    return [
      "events": Dictionary(uniqueKeysWithValues: zip(ids.map(String.init), events)),
      "performances": (0..<count).map { _ in performance(of: ids) },
      "areaNames": names(areas, "balcon côté jardin"),
      "audienceSubCategoryNames": names([audience], "Abonné"),
      "blockNames": [String: String](),
      "seatCategoryNames": names(categories, "catégorie"),
      "subTopicNames": names(topics.values.flatMap(\.self), "musique"),
      "subjectNames": [String: String](),
      "topicNames": names(Array(topics.keys), "genre"),
      "topicSubTopics": Dictionary(uniqueKeysWithValues: topics.map { ("\($0)", $1) }),
      "venueNames": ["HALL": "Grande salle"],
    ]
  }

  private func names(_ ids: [Int], _ text: String) -> [String: String] {
    Dictionary(uniqueKeysWithValues: ids.map { ("\($0)", "\($0 % 100)ème \(text)") })
  }

  private mutating func newID() -> Int {
    lastID += Int.random(in: 1...50, using: &generator)
    return lastID
  }

  private mutating func event() -> [String: Any] {
    let chosen = Array(topics.keys.sorted().shuffled(using: &generator).prefix(3))
    let id = newID()
    let hasLogo = Bool.random(using: &generator)
    return [
      "id": id, "name": "Concert nº \(id)", "description": NSNull(), "subtitle": NSNull(),
      "logo": hasLogo ? "/images/\(id)" : NSNull(), "subjectCode": NSNull(),
      "topicIds": chosen, "subTopicIds": chosen.compactMap { topics[$0]?[id % 5] },
    ]
  }

  private mutating func performance(of events: [Int]) -> [String: Any] {
    let count = [5, 5, 4, 4, 4, 1, 2].randomElement(using: &generator)!
    let chosen = Array(categories.shuffled(using: &generator).prefix(count))
    return [
      "id": newID(), "eventId": events.randomElement(using: &generator)!, "logo": NSNull(),
      "name": NSNull(), "seatMapImage": NSNull(), "venueCode": "HALL",
      "start": 1_300_000_000_000 + Int.random(in: 0..<40_000, using: &generator) * 900_000,
      "prices": chosen.map { category in
        [
          "amount": Int.random(in: 20...400, using: &generator) * 250,
          "audienceSubCategoryId": audience, "seatCategoryId": category,
        ]
      },
      "seatCategories": chosen.map { category in
        let some = areas.shuffled(using: &generator).prefix(
          Int.random(in: 6...16, using: &generator))
        return [
          "seatCategoryId": category,
          "areas": some.map { ["areaId": $0, "blockIds": [Int]()] as [String: Any] },
        ] as [String: Any]
      },
    ]
  }
}
