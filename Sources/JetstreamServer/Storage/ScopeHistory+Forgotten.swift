import Jetstream

extension ScopeHistory.Client {
  /// The change sets of a client that are known to be decided although their decisions were forgotten, since the decisions
  /// of all clients together were too many.
  ///
  /// The states follow from ``ScopeHistory/Client/decided``, the highest number whose decision is known:
  ///
  /// - ``nothing``: no number above it is known to be decided.
  /// - ``rest(upTo:)``: the number is above it.
  /// - ``all(upTo:isTold:)``: it is 0, and there are neither decisions nor traces.
  ///
  /// ``ScopeHistory/Client/emptied(upTo:isTold:seenAt:)`` alone leads to the last one, and the next decision leads from
  /// there to one of the others.
  package enum Forgotten: Sendable, Hashable {
    /// No decision was forgotten that the client does not know.
    case nothing
    /// Decisions on change sets behind the highest number whose decision is known, up to another number. The client has
    /// sent change sets again since.
    case rest(upTo: Int)
    /// All decisions on change sets up to a number, which is 0 if it is not known. `isTold` is true once the client was
    /// told so, with a state that may contain the change sets.
    case all(upTo: Int, isTold: Bool)

    /// The highest number of a change set whose decision was forgotten; 0 if none is known. A call up to it is not begun
    /// again.
    package var number: Int {
      switch self {
      case .nothing: 0
      case .rest(let number), .all(let number, _): number
      }
    }

    /// True if no decision is left. The client is told so when it comes back.
    package var isAll: Bool { if case .all = self { true } else { false } }

    /// True if the client was told that no decision is left, with a state that may contain the change sets.
    package var isTold: Bool { if case .all(_, let isTold) = self { isTold } else { false } }

    /// Returns the state in which decisions up to `number` were forgotten, and that on `decided` is known.
    static func behind(_ decided: Int, upTo number: Int) -> Self {
      number > decided ? .rest(upTo: number) : .nothing
    }
  }
}
