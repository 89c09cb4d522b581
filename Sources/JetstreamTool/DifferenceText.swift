import Foundation
import Jetstream

/// The difference between two states of a scope in lines: `+` for a model that came, `-` for one that went, `~` for one
/// that changed, each followed by its properties.
struct DifferenceText {
  private let text: RowsText

  /// The lines.
  private(set) var lines: [String] = []

  init(_ difference: RowDifference) {
    text = RowsText(difference.old, difference.new)
    if difference.isEmpty { lines.append("no difference") }
    for (sign, fragments) in [("+", difference.added), ("-", difference.removed)] {
      for fragment in fragments {
        lines.append("\(sign) \(text.model(fragment.uuid))")
        for (key, value) in fragment.properties {
          lines.append("    \(text.name(key)): \(text.value(value))")
        }
      }
    }
    for change in difference.changed {
      lines.append("~ \(text.model(change.uuid))")
      for property in change.properties {
        lines.append("    \(text.name(property.key)): \(words(property))")
      }
    }
  }

  private func words(_ property: RowDifference.Property) -> String {
    guard let before = property.before.flatMap(text.list),
      let after = property.after.flatMap(text.list)
    else { return "\(text.value(property.before)) -> \(text.value(property.after))" }
    let (old, new) = (Set(before), Set(after))
    var words = after.filter { !old.contains($0) }.map { "+ \(text.model($0))" }
    words += before.filter { !new.contains($0) }.map { "- \(text.model($0))" }
    if before.filter(new.contains) != after.filter(old.contains) { words.append("another order") }
    return words.joined(separator: ", ")
  }
}
