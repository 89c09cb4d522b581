import Jetstream

/// The properties of the root that were written in a history, by their names on the wire, of dictionaries not each entry.
struct WrittenProperties {
  /// Nil if the scope was restored from a log that does not contain them.
  private(set) var names: Set<String>?
  /// The name that was noted last: most change sets of a root write what the one before has written.
  private var last: String?

  init(_ names: Set<String>?) { self.names = names }

  /// Notes that a property was written.
  mutating func note(_ name: String) {
    if let last, name.hasBytes(of: last) { return }
    last = name
    // Mostly it is noted already: an insertion would make sure that the set is not shared.
    if names?.contains(name) == false { names?.insert(name) }
  }
}
