import Foundation
import Jetstream

/// The properties that the server has written for a session whose client has not acknowledged that yet.
///
/// It is kept for clients that do not rebase. Such a client shows what it is told at once, also over a change of its
/// own that is on its way. So when it submits a property that is written here, the server has to tell it the value
/// that counts, even if that is the one that it has submitted.
///
/// A write is on its way from when it is accepted. Where a log is kept, that is some time before the message about it
/// gets its index: messages wait for the log, and what the client submits meanwhile is judged at once.
struct UnacknowledgedWrites {
  private struct Entry {
    /// How many messages about the property are not sent yet.
    var waiting = 0
    /// The index of the last one that was sent; 0 if none was.
    var index = 0
  }

  private var entries: [PropertyKey: Entry] = [:]

  var count: Int { entries.count }
  var keys: Set<PropertyKey> { Set(entries.keys) }

  /// Begins with a message that waits to be sent.
  mutating func wait(for properties: some Sequence<PropertyKey>) {
    for property in properties { entries[property, default: Entry()].waiting += 1 }
  }

  /// A message that has waited is sent with an index.
  mutating func send(_ properties: some Sequence<PropertyKey>, in index: Int) {
    for property in properties {
      entries[property, default: Entry()].index = index
      entries[property]!.waiting -= 1
    }
  }

  /// Forgets what the client has acknowledged with the messages up to an index.
  mutating func acknowledge(upTo index: Int) {
    entries = entries.filter { $0.value.waiting > 0 || $0.value.index > index }
  }
}
