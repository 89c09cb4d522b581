/// A pattern that a text has to match as a whole.
///
/// It knows what every kind of regular expression has in common, and nothing that needs backtracking: characters, `.`,
/// classes such as `[a-z0-9-]` and `[^ ]`, `\d`, `\w`, `\s` and their opposites, groups, `|`, and the quantifiers `?`, `*`,
/// `+`, `{2}`, `{2,}` and `{2,5}`. There are no anchors, references, lookarounds, flags, or lazy quantifiers. Characters are
/// Unicode scalars, and `\d`, `\w` and `\s` are those of ASCII, so that every system finds the same.
///
/// A peer may have written both the pattern and the text. The pattern is an automaton without backtracking, whose states
/// are bits of one integer: a text costs O(n), with at most ``maximumPositions`` steps for each scalar, whatever the
/// pattern is.
package struct FieldPattern: Sendable {
  /// The pattern as it was written.
  package let text: String
  private let automaton: Automaton

  /// The highest number of bytes of a pattern.
  package static let maximumBytes = 256
  /// The highest number of characters and classes of a pattern, counting each repetition: `[a-f]{4}` has four.
  package static let maximumPositions = UInt128.bitWidth

  /// The reason why a text is no pattern, as a predicate.
  package struct Problem: Error, Hashable {
    package let text: String
    init(_ text: String) { self.text = text }
  }

  /// Reads a pattern.
  package init(_ text: String) throws(Problem) {
    guard text.utf8.count <= Self.maximumBytes else {
      throw Problem("is longer than \(Self.maximumBytes) bytes.")
    }
    var parser = Parser(text)
    automaton = try Automaton(try parser.pattern())
    self.text = text
  }

  /// Returns true if the pattern matches all of a text.
  package func matches(_ text: String) -> Bool { automaton.matches(text) }
}

/// Two patterns are equal if they are written alike.
extension FieldPattern: Hashable {
  package static func == (a: FieldPattern, b: FieldPattern) -> Bool {
    a.text.utf8.elementsEqual(b.text.utf8)
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(text) }
}

extension FieldPattern {
  /// A set of Unicode scalars.
  struct Class: Hashable, Sendable {
    var ranges: [ClosedRange<UInt32>] = []

    func contains(_ scalar: UInt32) -> Bool { ranges.contains { $0.contains(scalar) } }

    /// The scalars that are not in the set.
    var inverted: Class {
      var result = Class()
      var next: UInt32 = 0
      for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
        if range.lowerBound > next { result.ranges.append(next...(range.lowerBound - 1)) }
        next = max(next, range.upperBound + 1)
      }
      if next <= 0x10_FFFF { result.ranges.append(next...0x10_FFFF) }
      return result
    }
  }

  /// A part of a pattern that was read.
  indirect enum Node {
    case one(Class)
    case sequence([Node])
    case choice([Node])
    case repeated(Node, least: Int, most: Int?)

    /// True if the part matches nothing but the empty text.
    var isEmpty: Bool {
      switch self {
      case .one: false
      case .sequence(let nodes), .choice(let nodes): nodes.allSatisfy(\.isEmpty)
      case .repeated(let node, _, let most): most == 0 || node.isEmpty
      }
    }
  }

  /// The positions of a pattern, each a bit: which can be first, which can follow each other, and which can be last.
  struct Automaton: Sendable {
    private var follow: [UInt128] = []
    /// The different classes, each with the positions that have it.
    private var classes: [(scalars: Class, positions: UInt128)] = []
    private var whole = Part()

    /// A part of the pattern, as the positions at its ends.
    private struct Part {
      var first: UInt128 = 0
      var last: UInt128 = 0
      var isOptional = true
    }

    init(_ node: Node) throws(Problem) { whole = try add(node) }

    func matches(_ text: String) -> Bool {
      var active: UInt128 = 0
      var isBeginning = true
      for scalar in text.unicodeScalars {
        var reach = isBeginning ? whole.first : 0
        forEachBit(active) { reach |= follow[$0] }
        active = 0
        for entry in classes where entry.positions & reach != 0 {
          if entry.scalars.contains(scalar.value) { active |= entry.positions & reach }
        }
        if active == 0 { return false }
        isBeginning = false
      }
      return isBeginning ? whole.isOptional : active & whole.last != 0
    }

    private func forEachBit(_ bits: UInt128, _ body: (Int) -> Void) {
      var rest = bits
      while rest != 0 {
        body(rest.trailingZeroBitCount)
        rest &= rest - 1
      }
    }

    // MARK: Making

    /// Adds a part. Every call adds at least one position, or does not repeat anything: so the limit of positions also
    /// limits the time.
    private mutating func add(_ node: Node) throws(Problem) -> Part {
      if node.isEmpty { return Part() }
      switch node {
      case .one(let scalars): return try add(scalars)
      case .sequence(let nodes):
        var result = Part()
        for node in nodes { join(&result, try add(node)) }
        return result
      case .choice(let nodes):
        var result = Part(isOptional: false)
        for node in nodes {
          let part = try add(node)
          result.first |= part.first
          result.last |= part.last
          result.isOptional = result.isOptional || part.isOptional
        }
        return result
      case .repeated(let node, let least, let most):
        var result = Part()
        guard let most else {
          for _ in 1..<max(least, 1) { join(&result, try add(node)) }
          var part = try add(node)
          connect(part.last, part.first)
          if least == 0 { part.isOptional = true }
          join(&result, part)
          return result
        }
        for _ in 0..<least { join(&result, try add(node)) }
        for _ in least..<most {
          var part = try add(node)
          part.isOptional = true
          join(&result, part)
        }
        return result
      }
    }

    private mutating func add(_ scalars: Class) throws(Problem) -> Part {
      guard follow.count < FieldPattern.maximumPositions else {
        throw Problem(
          "has more than \(FieldPattern.maximumPositions) characters, each repetition counted.")
      }
      let position: UInt128 = 1 << UInt128(follow.count)
      follow.append(0)
      if let at = classes.firstIndex(where: { $0.scalars == scalars }) {
        classes[at].positions |= position
      } else {
        classes.append((scalars, position))
      }
      return Part(first: position, last: position, isOptional: false)
    }

    private mutating func join(_ part: inout Part, _ next: Part) {
      connect(part.last, next.first)
      if part.isOptional { part.first |= next.first }
      part.last = next.isOptional ? part.last | next.last : next.last
      part.isOptional = part.isOptional && next.isOptional
    }

    private mutating func connect(_ from: UInt128, _ to: UInt128) {
      var rest = from
      while rest != 0 {
        follow[rest.trailingZeroBitCount] |= to
        rest &= rest - 1
      }
    }
  }
}
