import Foundation

/// A change set that a server of version 1 is sent in several messages, and the server's decisions about them.
struct SplitSet {
  /// The fragments of the change set, as they are sent.
  private var fragments: [SyncFragment] = []
  /// The values before the change set, of the properties that are sent step by step.
  private var before: [Int: JSONObject] = [:]
  private var parts: [[SetSplitter.Piece]] = []
  /// The values that the server has accepted of each fragment.
  private var accepted: [Int: JSONObject] = [:]
  private var corrections: [Int: JSONObject] = [:]
  private var errors: [Int: WireError] = [:]
  /// The fragments of which the server has decided everything that their place in the order depends on.
  private(set) var decided: Set<Int> = []

  /// Divides the undecided fragments into messages.
  mutating func begin(
    _ fragments: [SyncFragment], limit: Int, isStructural: (SyncFragment, String) -> Bool,
    before: (SyncFragment, String) -> JSONValue?
  ) -> [[SyncFragment]] {
    self.fragments = fragments
    var sources: [SetSplitter.Source] = []
    var known: [UUID: JSONObject] = [:]
    for (origin, fragment) in fragments.enumerated() {
      var rest = fragment
      if decided.contains(origin) {
        guard fragment.kind == .add, let have = accepted[origin] else { continue }
        rest.kind = .change
        rest.properties = JSONObject(
          fragment.properties.lazy.filter { have[$0.key] != $0.value }.map { ($0.key, $0.value) })
        if rest.properties.isEmpty { continue }
        known[fragment.uuid] = have
      } else if fragment.kind == .change {
        var values = JSONObject()
        for (key, _) in fragment.properties where isStructural(fragment, key) {
          values[key] = before(fragment, key)
        }
        self.before[origin] = values
        known[fragment.uuid] = values
      }
      sources.append((origin, rest))
    }
    parts = SetSplitter.split(sources, limit: limit, isStructural: isStructural) {
      known[$0.uuid]?[$1]
    }
    return parts.isEmpty ? [[]] : parts.map { $0.map(\.fragment) }
  }

  /// Notes the replies to one message. Returns the pieces that the message carried.
  mutating func take(_ part: Int, _ replies: [FragmentReply]) -> [SetSplitter.Piece] {
    guard part < parts.count else { return [] }
    let pieces = parts[part]
    let isCountRight = replies.count == pieces.count
    for (at, piece) in pieces.enumerated() {
      let mismatch = FragmentReply(
        error: replies.first?.error ?? WireError(message: "The reply does not fit"))
      let reply = isCountRight ? replies[at] : mismatch
      if let error = reply.error {
        errors[piece.origin] = error
      } else {
        for (key, value) in piece.fragment.properties {
          accepted[piece.origin, default: [:]][key] = value
        }
        if accepted[piece.origin] == nil { accepted[piece.origin] = [:] }
        for (key, value) in reply.modifications ?? [:] {
          corrections[piece.origin, default: [:]][key] = value
        }
      }
      if piece.isLast || piece.fragment.kind == .add { decided.insert(piece.origin) }
    }
    return pieces
  }

  /// Returns the values that the server has accepted of a fragment; nil if it has accepted nothing.
  func values(of origin: Int) -> JSONObject? { accepted[origin] }

  /// Returns the server's corrections of a fragment.
  func correction(of origin: Int) -> JSONObject? { corrections[origin] }

  /// Returns the server's decision about a fragment as a whole. A fragment that was accepted only in part counts as
  /// corrected.
  ///
  /// - Parameter missing: the error for a fragment that the server has not answered.
  func reply(to origin: Int, missing: WireError? = nil) -> FragmentReply {
    guard let have = accepted[origin] else {
      return FragmentReply(
        error: errors[origin] ?? missing ?? WireError(message: "The reply does not fit"))
    }
    var values = corrections[origin] ?? [:]
    for (key, value) in fragments[origin].properties where have[key] != value {
      values[key] = have[key] ?? before[origin]?[key] ?? .null
    }
    return FragmentReply(modifications: values.isEmpty ? nil : values)
  }

  func replies(missing: WireError? = nil) -> [FragmentReply] {
    fragments.indices.map { reply(to: $0, missing: missing) }
  }

  /// Handles the loss of the session: the undecided fragments will be sent again in the next one.
  mutating func sessionEnded() {
    parts = []
    for origin in fragments.indices where !decided.contains(origin) {
      (accepted[origin], corrections[origin], errors[origin]) = (nil, nil, nil)
    }
  }
}
