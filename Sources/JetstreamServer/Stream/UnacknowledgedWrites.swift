import Foundation
import Jetstream

/// The properties that the server has written for a session whose client has not acknowledged that yet.
///
/// It is kept for clients that do not rebase. Such a client shows a value that it is sent at once, even over a change
/// of its own that is still on its way. So when it submits a property in this table, the server has to send it the
/// resulting value, even if that is the submitted one.
///
/// A write counts from the moment when it is accepted. With a log, the message about it gets its index some time later,
/// since messages wait until the record is durable, while the client's next submission is checked at once.
struct UnacknowledgedWrites {
  private struct Entry {
    /// The number of messages about the property that are not sent yet.
    var waiting = 0
    /// The index of the last message that was sent; 0 if there was none.
    var index = 0
  }

  private var entries: [PropertyKey: Entry] = [:]

  var count: Int { entries.count }
  var keys: some Collection<PropertyKey> { entries.keys }

  func contains(_ property: PropertyKey) -> Bool { entries[property] != nil }

  /// Adds the properties of a message that waits to be sent.
  mutating func wait(for properties: some Sequence<PropertyKey>) {
    for property in properties { entries[property, default: Entry()].waiting += 1 }
  }

  /// Notes that a message that has waited is sent with an index.
  mutating func send(_ properties: some Sequence<PropertyKey>, in index: Int) {
    for property in properties {
      entries[property, default: Entry()].index = index
      entries[property]!.waiting -= 1
    }
  }

  /// Drops the properties that the client has acknowledged with the messages up to an index.
  mutating func acknowledge(upTo index: Int) {
    entries = entries.filter { $0.value.waiting > 0 || $0.value.index > index }
  }
}
