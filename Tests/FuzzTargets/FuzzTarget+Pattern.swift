import Jetstream

extension FuzzTarget {
  /// The patterns of properties, which schemas of clients have: a pattern, and in the lines behind it texts to match.
  static let pattern = FuzzTarget(
    "pattern",
    seeds: [
      "[a-z0-9-]+\nab-9\n\nA", "(a*)*b\naaaaaaaaaaaaaaaab",
      #"\d{4}-\d\d?|[^\W_]{2,}"# + "\n2026-11",
      "(?:a|bc*){0,3}.\nabcc\nx", "(((a{9}){9}){9}){9}", #"[\]\-^é-ü]?\\\("# + "\né\\(",
    ],
    words: [
      "(", ")", "(?:", "[", "]", "[^", "-", "\\", "\\d", "\\W", "{9}", "{2,}", "{1,9999}", "*", "+",
      "?",
      "|", ".", "^", "é", "😀", "\n",
    ]
  ) { bytes in
    let lines = String(decoding: bytes, as: UTF8.self).split(
      separator: "\n", omittingEmptySubsequences: false
    ).map(String.init)
    guard let text = lines.first, let pattern = try? FieldPattern(text) else { return }
    try require(text.utf8.count <= FieldPattern.maximumBytes, "reads a pattern that is too long")
    for line in lines.dropFirst() {
      guard pattern.matches(line), let either = try? FieldPattern("(\(text))|z") else { continue }
      try require(either.matches(line), "\(text) matches \(line) only without an alternative")
      let twice = try? FieldPattern("(\(text)){2}")
      try require(twice?.matches(line + line) ?? true, "\(text) matches \(line) once, not twice")
    }
  }
}
