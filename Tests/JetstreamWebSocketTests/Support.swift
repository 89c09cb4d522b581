import Testing

@testable import JetstreamWebSocket

/// A small seeded generator (SplitMix64), so that a failing random case can be run again.
struct SeededGenerator: RandomNumberGenerator, Sendable {
  let seed: UInt64
  private var state: UInt64

  init(seed: UInt64 = .random(in: .min ... .max)) {
    self.seed = seed
    state = seed
  }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  mutating func bytes(_ count: Int) -> [UInt8] {
    (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }
  }
}

/// Everything a decoder makes of `wire` when it is fed in pieces of the given sizes, the last of
/// which is used for the rest.
func decode(
  _ wire: [UInt8], as role: WebSocketRole, limits: WebSocketLimits = WebSocketLimits(),
  pieces: () -> Int = { .max }
) -> (events: [FrameDecoder.Event], violation: WebSocketViolation?) {
  var decoder = FrameDecoder(role: role, limits: limits)
  var events: [FrameDecoder.Event] = []
  var rest = wire[...]
  while !rest.isEmpty {
    let piece = rest.prefix(pieces())
    rest = rest.dropFirst(piece.count)
    do {
      try decoder.decode(piece) { events.append($0) }
    } catch {
      return (events, error)
    }
  }
  return (events, nil)
}
