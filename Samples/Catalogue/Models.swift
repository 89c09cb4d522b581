import Foundation
import Jetstream

/// The root: everything that a concert hall sells.
final class Catalogue: ModelObject {
  @Property var events: ModelArray<Event> = []
  @Property var performances: ModelArray<Performance> = []
  @Property var areaNames: ModelArray<NameEntry> = []
  @Property var audienceSubCategoryNames: ModelArray<NameEntry> = []
  @Property var blockNames: ModelArray<NameEntry> = []
  @Property var seatCategoryNames: ModelArray<NameEntry> = []
  @Property var subTopicNames: ModelArray<NameEntry> = []
  @Property var subjectNames: ModelArray<NameEntry> = []
  @Property var topicNames: ModelArray<NameEntry> = []
  @Property var venueNames: ModelArray<NameEntry> = []
  @Property var topicSubTopics: ModelArray<Topic> = []
  /// How many edits everybody has made together.
  @Property(.counter) var edits = 0
  /// One for each process that edits.
  @Property var journals: ModelArray<Journal> = []
  /// Who has finished; see `mark` in the line protocol.
  @Property var marks: ModelArray<Mark> = []
}

/// What is performed.
final class Event: ModelObject {
  @Property var id = 0
  @Property var name: String?
  @Property var description: String?
  @Property var logo: String?
  @Property var subtitle: String?
  @Property var subjectCode: String?
  @Property var subTopicIds: [Int] = []
  @Property var topicIds: [Int] = []
}

/// One evening.
final class Performance: ModelObject {
  @Property var id = 0
  @Property var eventId = 0
  @Property var start = Date(timeIntervalSince1970: 0)
  @Property var venueCode = ""
  @Property var logo: String?
  @Property var name: String?
  @Property var prices: ModelArray<Price> = []
  @Property var seatCategories: ModelArray<SeatCategory> = []
  @Property var seatMapImage: String?
}

/// What a seat of a category costs, in cents.
final class Price: ModelObject {
  @Property var amount = 0
  @Property var audienceSubCategoryId = 0
  @Property var seatCategoryId = 0
}

/// Areas whose seats cost the same.
final class SeatCategory: ModelObject {
  @Property var seatCategoryId = 0
  @Property var areas: ModelArray<Area> = []
}

/// A part of the hall.
final class Area: ModelObject {
  @Property var areaId = 0
  @Property var blockIds: [Int] = []
}

/// The name of something that is known by a code elsewhere.
final class NameEntry: ModelObject {
  @Property var id = ""
  @Property var name = ""
}

/// Which topics belong to a topic.
final class Topic: ModelObject {
  @Property var topicId = 0
  @Property var subTopicIds: [Int] = []
}

/// What one process says it has done. No other process writes to it, so whatever is missing from it in the
/// end was lost on the way.
final class Journal: ModelObject {
  @Property var author = ""
  /// The number of the author's last edit.
  @Property var lastEdit = 0
  @Property var notes: ModelArray<Note> = []
}

/// A line of a journal.
final class Note: ModelObject {
  @Property var edit = 0
}

/// Says that a process has made its last edit.
final class Mark: ModelObject {
  @Property var author = ""
}
