/// Makes new inputs of known ones by a few blind changes, all of which follow from the generator.
public struct Mutator<Generator: RandomNumberGenerator> {
  private let seeds: [[UInt8]]
  private let words: [[UInt8]]
  private var generator: Generator

  /// The most bytes that an input grows to.
  private let maxLength = 4096

  /// Makes a mutator of a target's inputs.
  public init(_ target: FuzzTarget, generator: Generator) {
    seeds = target.seeds
    words = target.words
    self.generator = generator
  }

  /// The next input: one of the seeds, mostly with one to four changes.
  public mutating func next() -> [UInt8] {
    var bytes = seeds.randomElement(using: &generator) ?? []
    for _ in 0..<Int.random(in: 0...4, using: &generator) { change(&bytes) }
    return bytes
  }

  private mutating func change(_ bytes: inout [UInt8]) {
    let place = Int.random(in: 0...bytes.count, using: &generator)
    switch Int.random(in: 0..<8, using: &generator) {
    case 0 where place < bytes.count:
      bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
    case 1 where place < bytes.count: bytes[place] = UInt8.random(in: 0...255, using: &generator)
    case 2: bytes.insert(UInt8.random(in: 0...255, using: &generator), at: place)
    case 3: bytes.removeSubrange(range(of: bytes, from: place))
    case 4: insert(bytes[range(of: bytes, from: place)], into: &bytes)
    case 5: bytes.removeSubrange(place...)
    case 6:
      guard let other = seeds.randomElement(using: &generator) else { return }
      let from = Int.random(in: 0...other.count, using: &generator)
      bytes.replaceSubrange(place..., with: other[from...])
    default:
      guard let word = words.randomElement(using: &generator) else { return }
      insert(word[...], into: &bytes)
    }
  }

  private mutating func insert(_ piece: ArraySlice<UInt8>, into bytes: inout [UInt8]) {
    guard bytes.count + piece.count <= maxLength else { return }
    bytes.insert(contentsOf: piece, at: Int.random(in: 0...bytes.count, using: &generator))
  }

  private mutating func range(of bytes: [UInt8], from place: Int) -> Range<Int> {
    place..<Int.random(in: place...bytes.count, using: &generator)
  }
}
