/// A model class as data: its name on the wire, and its properties.
package final class ClassSchema: Sendable {
  /// The name of the class on the wire.
  package let wireName: String
  /// The names of the classes above it, the nearest first, without `ModelObject`.
  package let superclasses: [String]
  /// All properties, in the order of declaration, inherited ones first.
  package let properties: [PropertySchema]
  /// The synced properties that hold models.
  package let holding: [PropertySchema]
  /// The synced properties with rules for their values; nil for none.
  package let ruled: [PropertySchema]?
  /// True if the models of a collection have different values of a property.
  package let hasUnique: Bool
  private let indexByWireName: [String: Int]
  /// The wire names of all properties, of a class that has so few that comparing them costs less than a hash; otherwise empty.
  private let fewNames: [String]
  private static let few = 8
  private let dictionaries: EntryName.Dictionaries

  /// Makes a class. The properties have different names, and their indices.
  package init(_ wireName: String, superclasses: [String] = [], properties: [PropertySchema]) {
    self.wireName = wireName
    self.superclasses = superclasses
    self.properties = properties
    holding = properties.filter { $0.kind != .plain && $0.isSynced }
    let ruled = properties.filter { $0.rules != nil && $0.isSynced }
    self.ruled = ruled.isEmpty ? nil : ruled
    hasUnique = ruled.contains { $0.rules?.isUnique == true }
    indexByWireName = Dictionary(
      uniqueKeysWithValues: properties.filter { $0.kind != .dictionary }.map {
        ($0.wireName, $0.index)
      })
    fewNames =
      properties.count <= Self.few && !properties.contains { $0.kind == .dictionary }
      ? properties.map(\.wireName) : []
    dictionaries = EntryName.Dictionaries(properties)
  }

  /// True if the class has a dictionary of models.
  package var hasDictionaries: Bool { !dictionaries.isEmpty }

  /// The property with a name in fragments, or the entry of a dictionary; nil if there is none. A dictionary itself has no
  /// value in fragments.
  package subscript(wireName wireName: String) -> PropertySchema? {
    if let index = index(ofDeclared: wireName) { return properties[index] }
    guard let (index, key) = dictionaries.find(wireName) else { return nil }
    return properties[index].entry(key)
  }

  /// Returns the index of a declared property by its name in fragments; nil for entries of dictionaries.
  package func index(ofDeclared wireName: String) -> Int? {
    for at in fewNames.indices where fewNames[at] == wireName { return at }
    return fewNames.isEmpty ? indexByWireName[wireName] : nil
  }

  /// The name of a property that reads like that of an entry of a dictionary of the class, with the dictionary's name; nil
  /// if there is none, as it must be.
  package var nameLikeEntry: (property: String, dictionary: String)? {
    for property in properties {
      guard let (index, _) = dictionaries.find(property.wireName) else { continue }
      return (property.wireName, properties[index].wireName)
    }
    return nil
  }

  /// Returns true for the class itself and the classes above it. Every class is a `ModelObject`.
  package func isKind(of name: String) -> Bool {
    name == wireName || superclasses.contains(name) || name == Self.root
  }

  /// The name of the class above all others.
  package static let root = "ModelObject"

  /// The class above all others, which has no properties.
  package static let base = ClassSchema(root, properties: [])

  /// The fingerprint of the class: its wire name, and the wire names and types of its synced properties. Cost:
  /// O(n log n).
  package var fingerprint: SchemaFingerprint {
    let synced = properties.filter(\.isSynced)
      .sorted { $0.wireName.precedesInBytes($1.wireName) }
    return SchemaFingerprint(of: [wireName] + synced.flatMap { [$0.wireName, $0.type.signature] })
  }
}
