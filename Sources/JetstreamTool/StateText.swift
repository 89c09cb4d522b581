import Foundation
import Jetstream

/// The content of a scope as an indented tree, the root first.
///
/// A model stands once with its properties: in the first collection that has it, or else where a property refers to it
/// first. Elsewhere `->` refers to it.
///
/// Lines that are deeper than the deepest indentation have it, too, and their depth in brackets: indented further, a
/// long chain of models would take a quadratic number of blanks, and no screen would show their ends.
struct StateText {
  /// The deepest indentation, in levels.
  static let deepest = 40

  private enum Item {
    case model(UUID, label: String, depth: Int)
    case property(String, JSONValue, depth: Int)
  }

  private let rows: FragmentRows
  private let text: RowsText
  /// The models that a collection has.
  private var listed: Set<UUID> = []
  private var shown: Set<UUID> = []
  /// The rows that are still to be written, the next one last.
  private var open: [Item] = []

  /// The lines.
  private(set) var lines: [String] = []

  init(_ rows: FragmentRows) {
    self.rows = rows
    text = RowsText(rows)
    let state = rows.fullState()
    for fragment in state {
      for (_, value) in fragment.properties { listed.formUnion(text.list(value) ?? []) }
    }
    if state.isEmpty { lines.append("nothing is known of the scope yet") }
    // Behind the tree stands what only values of other kinds name.
    for (place, fragment) in state.enumerated() where !shown.contains(fragment.uuid) {
      open.append(.model(fragment.uuid, label: place == 0 ? "" : "elsewhere: ", depth: 0))
      while let item = open.popLast() { write(item) }
    }
  }

  private mutating func write(_ item: Item) {
    switch item {
    case .model(let uuid, let label, let depth):
      guard let row = rows[uuid], shown.insert(uuid).inserted else {
        return write("\(label)-> \(text.model(uuid))", depth)
      }
      write(label + text.model(uuid), depth)
      open += row.properties.map { .property($0.key, $0.value, depth: depth + 1) }.reversed()
    case .property(let key, let value, let depth): write(key, value, depth)
    }
  }

  private mutating func write(_ key: String, _ value: JSONValue, _ depth: Int) {
    let label = text.name(key) + ": "
    if let model = text.reference(value) {
      if listed.contains(model) { return write("\(label)-> \(text.model(model))", depth) }
      open.append(.model(model, label: label, depth: depth))
    } else if let list = text.list(value), !list.isEmpty {
      write("\(label)\(list.count) model\(list.count == 1 ? "" : "s")", depth)
      open += list.map { .model($0, label: "", depth: depth + 1) }.reversed()
    } else {
      write(label + text.value(value), depth)
    }
  }

  private mutating func write(_ line: String, _ depth: Int) {
    let isDeeper = depth > Self.deepest
    lines.append(
      String(repeating: "  ", count: min(depth, Self.deepest)) + (isDeeper ? "[\(depth)] " : "")
        + line)
  }
}
