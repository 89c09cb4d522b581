import Foundation
import Jetstream

extension ScopeHistory {
  /// The decisions on one client's change sets.
  package struct Client: Sendable, Hashable {
    /// The trace of a decision that the client knows: it tells a copy of the client what was decided under a number, and
    /// whether that was about its own change set.
    package struct Trace: Sendable, Hashable {
      /// The way in which a change set was decided.
      package enum Outcome: Int, Sendable {
        /// Each fragment was accepted as it is, and the change set has a sequence.
        case accepted
        /// No fragment was accepted.
        case rejected
        /// Anything else, such as a change set of which a part was rejected, or the call of a procedure.
        case other
      }

      /// The number of the change set.
      package var number: Int
      /// The sequence of the change set; nil if no part of it had an effect.
      package var sequence: Int?
      /// The checksum of the change set; nil if it is not known.
      package var checksum: UInt32?
      /// The way in which the change set was decided.
      package var outcome: Outcome

      /// Makes a trace.
      package init(number: Int, sequence: Int?, checksum: UInt32?, outcome: Outcome) {
        (self.number, self.sequence, self.checksum) = (number, sequence, checksum)
        self.outcome = outcome
      }
    }

    /// The number of traces that are kept, at least. In as many change sets, two copies of a client are told apart.
    static let tracesKept = 32

    /// The highest number of a decided change set.
    package private(set) var decided: Int
    /// The decisions that the client may not know yet.
    package private(set) var decisions: [ScopeStanding.Decision]
    /// The traces of the decisions before those, in the order of their numbers.
    package private(set) var traces: [Trace]
    /// The approximate size in memory of all ``decisions``, in bytes.
    package private(set) var bytes: Int
    /// The scope's sequence when the client was last seen.
    package var seenAt = 0
    /// The decisions that were forgotten.
    package private(set) var forgotten: Forgotten

    /// Makes the decisions on one client's change sets, of which those behind `decided` up to a number were forgotten.
    package init(
      decided: Int, decisions: [ScopeStanding.Decision] = [], traces: [Trace] = [],
      forgottenUpTo number: Int = 0
    ) {
      self.decided = decided
      self.decisions = decisions
      self.traces = traces
      forgotten = .behind(decided, upTo: number)
      bytes = decisions.reduce(0) { $0 + $1.roughSize }
    }

    /// Returns a client all of whose decisions, those on its change sets up to a number, were forgotten.
    static func emptied(upTo number: Int, isTold: Bool, seenAt sequence: Int) -> Self {
      var result = Self(decided: 0)
      result.seenAt = sequence
      result.forgotten = .all(upTo: number, isTold: isTold)
      return result
    }

    /// The client once all its decisions are forgotten.
    var emptied: Self {
      .emptied(upTo: max(forgotten.number, decided), isTold: forgotten.isTold, seenAt: seenAt)
    }

    /// Returns the client once all its decisions are forgotten; nil if it knows all decisions on change sets behind `number`,
    /// or has made none.
    func emptied(behind number: Int) -> Self? {
      if decisions.isEmpty, forgotten == .nothing { return nil }
      return max(forgotten.number, decided) > number ? emptied : nil
    }

    /// The approximate size in memory of all decisions and traces, in bytes.
    var size: Int { bytes + traces.count * MemoryLayout<Trace>.stride }

    /// Drops the traces.
    mutating func dropTraces() { traces = [] }

    /// Appends the decision on the next change set.
    mutating func append(_ decision: ScopeStanding.Decision) {
      decided = max(decided, decision.number)
      forgotten = .behind(decided, upTo: forgotten.number)
      decisions.append(decision)
      bytes += decision.roughSize
    }

    /// Drops the decisions that the client knows, those up to `number`, but for their traces.
    mutating func forget(upTo number: Int) {
      let count = decisions.firstIndex { $0.number > number } ?? decisions.count
      if count == 0 { return }
      // By places and no slice, which would make the array that is about to change a copy.
      for at in 0..<count { bytes -= decisions[at].roughSize }
      for at in max(count - Self.tracesKept, 0)..<count { traces.append(Trace(decisions[at])) }
      decisions.removeFirst(count)
      // Half of them at a time: mostly a decision is known before the next one is made.
      if traces.count > 2 * Self.tracesKept {
        traces.removeFirst(traces.count - Self.tracesKept)
      }
    }

    /// Returns the decision on the change set with a number, or its trace as one; nil for none.
    func decision(on number: Int) -> ScopeStanding.Decision? {
      decisions.first { $0.number == number }
        ?? traces.last { $0.number == number }.map { ScopeStanding.Decision($0) }
    }

    /// Returns the decisions on change sets with numbers above `number`, up to `last`, in order, and the traces of those that
    /// the client has said it knows. Mostly that is all decisions or none, which takes no copy: many fetches may be
    /// answered at once.
    func unknown(after number: Int, upTo last: Int = .max) -> [ScopeStanding.Decision] {
      let known = traces.filter { $0.number > number && $0.number <= last }
      guard known.isEmpty else {
        return known.map { ScopeStanding.Decision($0) } + decisions.filter { $0.number <= last }
      }
      guard let first = decisions.first?.number, let newest = decisions.last?.number,
        newest > number
      else { return [] }
      if first > number, newest <= last { return decisions }
      return decisions.filter { $0.number > number && $0.number <= last }
    }
  }
}

extension ScopeHistory.Client.Trace {
  init(_ decision: ScopeStanding.Decision) {
    let outcome: Outcome =
      if decision.fragmentReplies.isEmpty, decision.sequence != nil, decision.outcome == nil {
        .accepted
      } else if decision.isBare || decision.rejectsAll {
        .rejected
      } else {
        .other
      }
    self.init(
      number: decision.number, sequence: decision.sequence, checksum: decision.checksum,
      outcome: outcome)
  }
}

extension ScopeStanding.Decision {
  init(_ trace: ScopeHistory.Client.Trace) {
    self.init(
      number: trace.number, fragmentReplies: [], sequence: trace.sequence,
      checksum: trace.checksum)
    isForgotten = trace.outcome == .other
  }

  /// True if no fragment was accepted, or if a call has failed.
  fileprivate var rejectsAll: Bool {
    if sequence != nil { return false }
    if let outcome { return outcome.error != nil }
    return !fragmentReplies.isEmpty && fragmentReplies.allSatisfy { $0.error != nil }
  }

  /// The approximate size of the decision in memory, in bytes.
  var roughSize: Int { 150 + FragmentReply.roughSize(fragmentReplies, outcome) }
}
