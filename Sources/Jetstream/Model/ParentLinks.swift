/// Who holds a model: one link for each property of each parent. Cost: O(1) for everything but a walk
/// over all.
struct ParentLinks {
  struct Link: Hashable {
    /// Unowned: a parent that goes removes its links.
    unowned(unsafe) let parent: ModelRecord
    let index: Int

    var isSynced: Bool { parent.schema.properties[index].isSynced }

    static func == (a: Link, b: Link) -> Bool { a.parent === b.parent && a.index == b.index }

    func hash(into hasher: inout Hasher) {
      hasher.combine(ObjectIdentifier(parent))
      hasher.combine(index)
    }
  }

  private var first: Link?
  private var rest: ContiguousArray<Link> = []
  /// Where each link stands in `rest`, once there are too many to search.
  private var places: [Link: Int]?

  private static let searchLimit = 16

  var isEmpty: Bool { first == nil }
  var count: Int { first == nil ? 0 : rest.count + 1 }

  mutating func add(_ link: Link) {
    guard first != nil else {
      first = link
      return
    }
    places?[link] = rest.count
    rest.append(link)
    if places == nil, rest.count > Self.searchLimit {
      places = Dictionary(uniqueKeysWithValues: rest.enumerated().map { ($1, $0) })
    }
  }

  /// Removes a link; false if there was none. The last one takes its place.
  mutating func remove(_ link: Link) -> Bool {
    if first == link {
      first = rest.popLast()
      if let first { places?[first] = nil }
      return true
    }
    guard let place = places.map({ $0[link] }) ?? rest.firstIndex(of: link) else { return false }
    places?[link] = nil
    let last = rest.removeLast()
    if place < rest.count {
      rest[place] = last
      places?[last] = place
    }
    return true
  }

  /// The link that stands at `place`; nil beyond the last.
  func link(at place: Int) -> Link? {
    if place == 0 { return first }
    return place <= rest.count ? rest[place - 1] : nil
  }

  func forEach(_ body: (Link) -> Void) {
    if let first { body(first) }
    for link in rest { body(link) }
  }

  var all: [Link] { (first.map { [$0] } ?? []) + rest }
}
