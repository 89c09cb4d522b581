import Foundation
import Jetstream

/// Why a catalogue could not be imported: which file, where in it, and what is wrong there.
struct ImportError: Error, CustomStringConvertible {
  let file: String
  let place: String
  let problem: String

  var description: String {
    place.isEmpty ? "\(file): \(problem)" : "\(file): \(place): \(problem)"
  }
}

extension Catalogue {
  /// Reads a catalogue in the form of `citm_catalog.json`.
  convenience init(contentsOfFile path: String) throws(ImportError) {
    let data: Data
    do {
      data = try Data(contentsOf: URL(fileURLWithPath: path))
    } catch {
      throw ImportError(
        file: path, place: "",
        problem: FileManager.default.fileExists(atPath: path)
          ? "cannot be read" : "there is no such file")
    }
    try self.init(json: data, file: path)
  }

  /// Reads a catalogue; `file` is what errors call it.
  convenience init(json: some Collection<UInt8>, file: String) throws(ImportError) {
    let value: JSONValue
    do {
      value = try JSONValue(parsing: json)
    } catch {
      throw ImportError(file: file, place: "", problem: "is not JSON: \(error)")
    }
    self.init()
    let top = try JSONNode(value: value, file: file, place: "").members()
    events = ModelArray(
      try top["events"].entries().map { (_, node) throws(ImportError) in try Event(node) })
    performances = ModelArray(try top["performances"].elements().map(Performance.init))
    areaNames = try NameEntry.table(top["areaNames"])
    audienceSubCategoryNames = try NameEntry.table(top["audienceSubCategoryNames"])
    blockNames = try NameEntry.table(top["blockNames"])
    seatCategoryNames = try NameEntry.table(top["seatCategoryNames"])
    subTopicNames = try NameEntry.table(top["subTopicNames"])
    subjectNames = try NameEntry.table(top["subjectNames"])
    topicNames = try NameEntry.table(top["topicNames"])
    venueNames = try NameEntry.table(top["venueNames"])
    topicSubTopics = ModelArray(
      try top["topicSubTopics"].entries().map { (key, node) throws(ImportError) in
        let topic = Topic()
        topic.topicId = try node.integer(fromKey: key)
        topic.subTopicIds = try node.integers()
        return topic
      })
  }
}

extension Event {
  fileprivate convenience init(_ node: JSONNode) throws(ImportError) {
    self.init()
    let fields = try node.members()
    id = try fields["id"].integer()
    name = try fields["name"].optionalString()
    description = try fields["description"].optionalString()
    logo = try fields["logo"].optionalString()
    subtitle = try fields["subtitle"].optionalString()
    subjectCode = try fields["subjectCode"].optionalString()
    subTopicIds = try fields["subTopicIds"].integers()
    topicIds = try fields["topicIds"].integers()
  }
}

extension Performance {
  fileprivate convenience init(_ node: JSONNode) throws(ImportError) {
    self.init()
    let fields = try node.members()
    id = try fields["id"].integer()
    eventId = try fields["eventId"].integer()
    start = Date(timeIntervalSince1970: Double(try fields["start"].integer()) / 1000)
    venueCode = try fields["venueCode"].string()
    logo = try fields["logo"].optionalString()
    name = try fields["name"].optionalString()
    seatMapImage = try fields["seatMapImage"].optionalString()
    prices = ModelArray(try fields["prices"].elements().map(Price.init))
    seatCategories = ModelArray(try fields["seatCategories"].elements().map(SeatCategory.init))
  }
}

extension Price {
  fileprivate convenience init(_ node: JSONNode) throws(ImportError) {
    self.init()
    let fields = try node.members()
    amount = try fields["amount"].integer()
    audienceSubCategoryId = try fields["audienceSubCategoryId"].integer()
    seatCategoryId = try fields["seatCategoryId"].integer()
  }
}

extension SeatCategory {
  fileprivate convenience init(_ node: JSONNode) throws(ImportError) {
    self.init()
    let fields = try node.members()
    seatCategoryId = try fields["seatCategoryId"].integer()
    areas = ModelArray(try fields["areas"].elements().map(Area.init))
  }
}

extension Area {
  fileprivate convenience init(_ node: JSONNode) throws(ImportError) {
    self.init()
    let fields = try node.members()
    areaId = try fields["areaId"].integer()
    blockIds = try fields["blockIds"].integers()
  }
}

extension NameEntry {
  fileprivate static func table(_ node: JSONNode) throws(ImportError) -> ModelArray<NameEntry> {
    ModelArray(
      try node.entries().map { (key, name) throws(ImportError) in
        let entry = NameEntry()
        entry.id = key
        entry.name = try name.string()
        return entry
      })
  }
}
