/// A reader of bytes that come from elsewhere, with what has to hold whatever they are.
///
/// A new one is an extension in a file of its own, and its name in ``all``.
public struct FuzzTarget: Sendable {
  /// The name by which `.ci/fuzz` knows it.
  public let name: String

  /// Inputs to begin with: right ones, of every kind.
  public let seeds: [[UInt8]]

  /// Pieces that a blind change would hardly ever come by.
  public let words: [[UInt8]]

  /// Reads the input and throws if what came out is wrong. Most inputs will be refused, which is right.
  public let check: @Sendable ([UInt8]) throws -> Void

  /// Makes a target whose seeds and words are text.
  public init(
    _ name: String, seeds: [String], words: [String],
    check: @escaping @Sendable ([UInt8]) throws -> Void
  ) {
    self.init(
      name, seeds: seeds.map { Array($0.utf8) }, words: words.map { Array($0.utf8) }, check: check)
  }

  /// Makes a target.
  public init(
    _ name: String, seeds: [[UInt8]], words: [[UInt8]],
    check: @escaping @Sendable ([UInt8]) throws -> Void
  ) {
    self.name = name
    self.seeds = seeds
    self.words = words
    self.check = check
  }

  /// Every target.
  public static let all: [FuzzTarget] = [
    .json, .fragments, .messages, .log, .changeSets, .pattern,
  ]
}

/// Something that must not happen did.
public struct Finding: Error, CustomStringConvertible {
  /// What happened.
  public let description: String

  /// Makes a finding.
  public init(_ description: String) { self.description = description }
}

/// Throws a ``Finding`` unless the condition holds.
func require(_ condition: Bool, _ problem: @autoclosure () -> String) throws {
  guard condition else { throw Finding(problem()) }
}
