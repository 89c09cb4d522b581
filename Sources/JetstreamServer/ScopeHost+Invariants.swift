import Foundation
import Jetstream

/// The invariants of hosts, for tests and simulations.
extension ScopeHost {
  /// Describes what must not be the case between two inputs, a line for each; empty if all is well. Cost: O(n) in what
  /// is kept for sessions, and in the rows of content that is not made of model classes.
  func checkInvariants() -> [String] {
    var problems = tombstones.checkInvariants(at: sequence) + content.checkInvariants()
    problems += records.checkInvariants() + audience.checkInvariants() + stream.checkInvariants()
    let places = stream.all.map(\.sequence)
    if let last = places.last, places != Array(last + 1 - places.count...last) || last != sequence {
      problems.append("the stream has \(places), and the last sequence is \(sequence)")
    }
    if content.isSealed, records.isInStep == false { problems += states.checkInvariants() }
    if let item = stream.all.last, let text = item.text,
      text.bytes != FragmentsText(item.fragments).bytes
    {
      problems.append("\(item.sequence) is told as \(String(decoding: text.bytes, as: UTF8.self))")
    }
    if passage.isOpen { problems.append("a submission is still being applied") }
    return problems.map { "scope \(content.name): \($0)" }
  }
}

extension ServerEngine {
  /// Describes what must not be the case, a line for each; empty if all is well.
  package func checkInvariants() -> [String] {
    var problems = hosts.values.flatMap { $0.checkInvariants() } + openScopes.checkInvariants()
    for session in sessions.values {
      var waiting = StreamAmount()
      for subscription in session.subscriptions.all { waiting += subscription.waiting }
      if waiting != session.waiting {
        problems.append("a session has \(session.waiting) of its scopes' \(waiting) to acknowledge")
      }
      for subscription in session.subscriptions.all
      where subscription.seen > subscription.host.sequence {
        problems.append(
          "a session has seen \(subscription.seen) of \(subscription.host.sequence) change sets")
      }
    }
    return problems.sorted()
  }
}
