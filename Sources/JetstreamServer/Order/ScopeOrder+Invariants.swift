import Foundation
import Jetstream

/// The invariants of a scope's order, for tests and simulations.
extension ScopeOrder {
  /// Describes what must not be the case between two inputs, a line for each; empty if all is well. Cost: O(n) in what
  /// is kept for sessions, and in the rows of content that is not made of model classes.
  func checkInvariants() -> [String] {
    var problems = tombstones.checkInvariants(at: sequence) + content.checkInvariants()
    problems += records.checkInvariants() + stream.checkInvariants()
    let places = stream.all.map(\.sequence)
    if let last = places.last, places != Array(last + 1 - places.count...last) || last != sequence {
      problems.append("the stream has \(places), and the last sequence is \(sequence)")
    }
    if let item = stream.all.last, let text = item.text,
      text.bytes != FragmentsText(item.fragments).bytes
    {
      problems.append("\(item.sequence) is told as \(String(decoding: text.bytes, as: UTF8.self))")
    }
    if passage.isOpen { problems.append("a submission is still being applied") }
    return problems.map { "scope \(content.name): \($0)" }
  }
}
