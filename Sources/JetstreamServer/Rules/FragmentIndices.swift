/// The indices of one or more fragments of a change set.
///
/// Mostly there is one, for which no array is made: there is such a list for each difference.
struct FragmentIndices: RandomAccessCollection {
  private let head: Int
  private var tail: [Int] = []

  init(_ index: Int) { head = index }

  /// Joins several lists, of which there is at least one.
  init(joining lists: some BidirectionalCollection<FragmentIndices>) {
    guard var result = lists.first else { preconditionFailure("There is nothing to join.") }
    for list in lists.dropFirst() { result.tail += list }
    self = result
  }

  mutating func append(_ index: Int) { tail.append(index) }

  var startIndex: Int { 0 }
  var endIndex: Int { 1 + tail.count }

  subscript(position: Int) -> Int { position == 0 ? head : tail[position - 1] }
}
