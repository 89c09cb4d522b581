extension EntryName {
  /// The dictionaries of a class, by which the names of entries are read.
  package struct Dictionaries: Sendable {
    private var prefixes: [(text: String, index: Int)] = []

    var isEmpty: Bool { prefixes.isEmpty }

    init(_ properties: [PropertySchema]) {
      for property in properties where property.kind == .dictionary {
        prefixes.append((EntryName.normal(property.wireName) + EntryName.separator, property.index))
      }
      // The longest first, should one be the beginning of another.
      prefixes.sort { $0.text.utf8.count > $1.text.utf8.count }
    }

    /// Returns the index of the dictionary and the key of the entry with a name; nil if it is no name of an entry.
    package func find(_ name: String) -> (index: Int, key: String)? {
      if prefixes.isEmpty || !EntryName.mayBeEntry(name) { return nil }
      let name = EntryName.normal(name)
      for prefix in prefixes where name.utf8.starts(with: prefix.text.utf8) {
        return (prefix.index, String(name.utf8.dropFirst(prefix.text.utf8.count)) ?? "")
      }
      return nil
    }
  }
}
