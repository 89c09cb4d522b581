/// Returns the smallest input of those that `smaller` leads to and that still fail: the first smaller one that fails is
/// taken, again and again.
func minimal<Input>(
  _ input: Input, smaller: (Input) -> [Input], fails: (Input) -> Bool
) -> Input {
  var input = input
  while let next = smaller(input).first(where: fails) { input = next }
  return input
}

/// Returns the array without one of its elements, for each of them.
func withoutOne<Element>(_ elements: [Element]) -> [[Element]] {
  elements.indices.map { index in
    var rest = elements
    rest.remove(at: index)
    return rest
  }
}
