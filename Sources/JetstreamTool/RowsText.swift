import Foundation
import Jetstream

/// Writes names of models, properties and values for lines that people read.
struct RowsText {
  /// The class names of all models that can be named.
  private let classNames: [UUID: String]
  /// The number of characters in which the UUIDs of these models differ.
  private let width: Int

  init(_ states: FragmentRows...) {
    let fragments = states.flatMap { $0.fullState() }
    classNames = Dictionary(
      fragments.map { ($0.uuid, $0.className) }, uniquingKeysWith: { _, last in last })
    let texts = classNames.keys.map(\.wireText)
    // Each step adds a group of digits.
    width =
      [8, 13, 18, 23].first { width in
        Set(texts.map { $0.prefix(width) }).count == texts.count
      } ?? 36
  }

  /// Returns a model as its class and the beginning of its UUID.
  func model(_ uuid: UUID) -> String {
    "\(name(classNames[uuid] ?? "?")) \(uuid.wireText.prefix(width))"
  }

  /// Returns a name as it is, or in quotes if it has other characters than names in source code.
  func name(_ text: String) -> String {
    let isPlain = text.unicodeScalars.allSatisfy { scalar in
      scalar.properties.isAlphabetic || scalar.properties.numericType != nil
        || "_.-".unicodeScalars.contains(scalar)
    }
    return isPlain && !text.isEmpty ? text : JSONValue.string(text).text
  }

  /// Returns a value in one line: models by their names, everything else as JSON.
  func value(_ value: JSONValue?) -> String {
    guard let value else { return "nothing" }
    if let model = reference(value) { return self.model(model) }
    if let list = list(value), !list.isEmpty {
      return "[\(list.map { model($0) }.joined(separator: ", "))]"
    }
    return value.canonicalText
  }

  /// Returns the model that a value refers to; nil if it is none of those that can be named.
  func reference(_ value: JSONValue) -> UUID? {
    guard case .string(let text) = value, let uuid = UUID(wireText: text),
      classNames[uuid] != nil
    else { return nil }
    return uuid
  }

  /// Returns the models of a collection; nil if the value is none. An empty array may be one.
  func list(_ value: JSONValue) -> [UUID]? {
    guard case .array(let elements) = value else { return nil }
    let uuids = elements.compactMap { element -> UUID? in
      if case .string(let text) = element { UUID(wireText: text) } else { nil }
    }
    guard uuids.count == elements.count,
      uuids.isEmpty || uuids.contains(where: { classNames[$0] != nil })
    else { return nil }
    return uuids
  }
}
