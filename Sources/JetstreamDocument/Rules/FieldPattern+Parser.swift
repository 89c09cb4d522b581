extension FieldPattern {
  /// Reads a pattern. The calls go no deeper than the pattern is long, which is limited.
  struct Parser {
    private let scalars: [Unicode.Scalar]
    private var at = 0

    init(_ text: String) { scalars = Array(text.unicodeScalars) }

    mutating func pattern() throws(Problem) -> Node {
      let node = try choice()
      if at < scalars.count { throw Problem("has a ) without its (.") }
      return node
    }

    private var next: Unicode.Scalar? { at < scalars.count ? scalars[at] : nil }

    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
      guard next == scalar else { return false }
      at += 1
      return true
    }

    private mutating func choice() throws(Problem) -> Node {
      var nodes = [try sequence()]
      while take("|") { nodes.append(try sequence()) }
      return nodes.count == 1 ? nodes[0] : .choice(nodes)
    }

    private mutating func sequence() throws(Problem) -> Node {
      var nodes: [Node] = []
      while let next, next != "|", next != ")" { nodes.append(try quantified()) }
      return .sequence(nodes)
    }

    private mutating func quantified() throws(Problem) -> Node {
      let node = try atom()
      guard let (least, most) = try quantifier() else { return node }
      if let next, "?*+{".unicodeScalars.contains(next) {
        throw Problem("has a quantifier behind a quantifier.")
      }
      return .repeated(node, least: least, most: most)
    }

    private mutating func quantifier() throws(Problem) -> (least: Int, most: Int?)? {
      if take("?") { return (0, 1) }
      if take("*") { return (0, nil) }
      if take("+") { return (1, nil) }
      guard take("{") else { return nil }
      let least = try number()
      if take("}") { return (least, least) }
      guard take(",") else { throw Problem("has a { without a number of repetitions.") }
      if take("}") { return (least, nil) }
      let most = try number()
      guard take("}"), most >= least else {
        throw Problem("has a { without a number of repetitions.")
      }
      return (least, most)
    }

    private mutating func number() throws(Problem) -> Int {
      var digits = ""
      while let next, ("0"..."9").contains(next) {
        digits.unicodeScalars.append(next)
        at += 1
      }
      guard digits.utf8.count <= 4, let number = Int(digits) else {
        throw Problem("has a { without a number of repetitions.")
      }
      return number
    }

    private mutating func atom() throws(Problem) -> Node {
      let scalar = scalars[at]
      at += 1
      switch scalar {
      case "(":
        if take("?"), !take(":") { throw Problem("has a (? that is not (?:.") }
        let node = try choice()
        guard take(")") else { throw Problem("has a ( without its ).") }
        return node
      case "[": return .one(try characterClass())
      case ".": return .one(Class(ranges: [0x0A...0x0A]).inverted)
      case "\\": return .one(try escape())
      case "^", "$":
        throw Problem("has a \(scalar), and always matches as a whole; a character is \\\(scalar).")
      case "?", "*", "+", "{", "}", "]":
        throw Problem("has a \(scalar) behind nothing; a character is \\\(scalar).")
      default: return .one(Class(scalar))
      }
    }

    private mutating func characterClass() throws(Problem) -> Class {
      let isInverted = take("^")
      var result = Class()
      while let scalar = next, scalar != "]" {
        at += 1
        if scalar == "[" { throw Problem("has a [ in a class; a character is \\[.") }
        let low = scalar == "\\" ? try escape() : Class(scalar)
        guard next == "-", at + 1 < scalars.count, scalars[at + 1] != "]" else {
          result.ranges += low.ranges
          continue
        }
        at += 2
        let high = scalars[at - 1] == "\\" ? try escape() : Class(scalars[at - 1])
        guard let from = low.only, let to = high.only, from <= to else {
          throw Problem("has a range in a class that does not go from a character to a later one.")
        }
        result.ranges.append(from...to)
      }
      guard take("]") else { throw Problem("has a [ without its ].") }
      if result.ranges.isEmpty { throw Problem("has a class of no characters.") }
      return isInverted ? result.inverted : result
    }

    private mutating func escape() throws(Problem) -> Class {
      guard let scalar = next else { throw Problem("ends with a \\.") }
      at += 1
      switch scalar {
      case "d": return .digits
      case "D": return Class.digits.inverted
      case "w": return .word
      case "W": return Class.word.inverted
      case "s": return .space
      case "S": return Class.space.inverted
      case "n": return Class("\n")
      case "r": return Class("\r")
      case "t": return Class("\t")
      default:
        guard scalar.isASCII, !Class.word.contains(scalar.value) else {
          throw Problem("has a \\\(scalar), which has no meaning here.")
        }
        return Class(scalar)
      }
    }
  }
}

extension FieldPattern.Class {
  fileprivate init(_ scalar: Unicode.Scalar) { self.init(ranges: [scalar.value...scalar.value]) }

  fileprivate init(_ ranges: ClosedRange<Unicode.Scalar>...) {
    self.init(ranges: ranges.map { $0.lowerBound.value...$0.upperBound.value })
  }

  /// The only scalar of the set; nil for a set of another size.
  fileprivate var only: UInt32? {
    ranges.count == 1 && ranges[0].count == 1 ? ranges[0].lowerBound : nil
  }

  fileprivate static let digits = Self("0"..."9")
  fileprivate static let word = Self("0"..."9", "A"..."Z", "_"..."_", "a"..."z")
  fileprivate static let space = Self("\t"..."\r", " "..." ")
}
