/// The classes of a scope as data, by their names on the wire.
package struct Schema: Sendable {
  /// The class of the root.
  package let root: ClassSchema
  /// True if one of the classes has a property whose values are unique in a collection.
  package let hasUnique: Bool
  private let classes: [String: ClassSchema]

  /// Makes a schema of classes with different names, among them the root's.
  package init(root: ClassSchema, classes: [ClassSchema]) {
    self.root = root
    var byName = Dictionary(uniqueKeysWithValues: classes.map { ($0.wireName, $0) })
    byName[root.wireName] = root
    self.classes = byName
    hasUnique = byName.values.contains(where: \.hasUnique)
  }

  /// The class with a name; nil if there is none.
  package subscript(_ wireName: String) -> ClassSchema? { classes[wireName] }

  /// All classes, in the order of their names.
  package var all: [ClassSchema] {
    classes.values.sorted { $0.wireName.precedesInBytes($1.wireName) }
  }
}
