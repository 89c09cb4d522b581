/// Determines whether the root leads to a row, by climbing from holder to holder.
///
/// Results stay valid while only rows leave to which the root does not lead. No row is visited twice: n questions about a
/// document cost O(n) in its rows and holders together.
struct RowReach {
  private let root: Row
  private var known: [ObjectIdentifier: Bool]

  init(root: Row) {
    self.root = root
    known = [ObjectIdentifier(root): true]
  }

  /// Returns true if the root leads to a row of the document.
  mutating func leads(to row: Row) -> Bool {
    if let known = known[ObjectIdentifier(row)] { return known }
    var climb = Climb(row)
    while let holder = climb.next() {
      guard let isReached = known[ObjectIdentifier(holder)] else {
        climb.enter(holder)
        continue
      }
      if isReached { break }
    }
    for (row, isReached) in climb.results { known[ObjectIdentifier(row)] = isReached }
    return known[ObjectIdentifier(row)] == true
  }

  /// A depth-first climb, which ends at a row to which the root leads, or when there is no way on.
  private struct Climb {
    private var rows: [Row]
    private var places: [ObjectIdentifier: Int]
    /// The rows below each row, by their places.
    private var below: [[Int]] = [[]]
    /// The rows from the first one to where the climb is, each with the holders that are left to try.
    private var path: [(row: Int, holders: [RowHolders.Holder])]

    init(_ row: Row) {
      rows = [row]
      places = [ObjectIdentifier(row): 0]
      path = [(0, row.holders.all)]
    }

    mutating func next() -> Row? {
      while !path.isEmpty {
        if let holder = path[path.count - 1].holders.popLast() { return holder.row }
        path.removeLast()
      }
      return nil
    }

    mutating func enter(_ row: Row) {
      let from = path[path.count - 1].row
      if let place = places[ObjectIdentifier(row)] { return below[place].append(from) }
      places[ObjectIdentifier(row)] = rows.count
      path.append((rows.count, row.holders.all))
      rows.append(row)
      below.append([from])
    }

    /// The root leads to what is on the path when the climb has ended, and to all below. From the others no way leads on.
    var results: [(Row, isReached: Bool)] {
      var isReached = [Bool](repeating: false, count: rows.count)
      var open = path.map(\.row)
      for place in open { isReached[place] = true }
      while let place = open.popLast() {
        for lower in below[place] where !isReached[lower] {
          isReached[lower] = true
          open.append(lower)
        }
      }
      return Array(zip(rows, isReached))
    }
  }
}
