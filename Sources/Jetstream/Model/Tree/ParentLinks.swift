/// The parents of a model: one link for each property of each parent. Adding, removing and counting
/// links costs O(1).
struct ParentLinks {
  struct Link: Hashable {
    /// Unowned: a parent removes its links before it is released.
    unowned(unsafe) let parent: ModelRecord
    let index: Int

    var isSynced: Bool { parent.schema.properties[index].isSynced }

    static func == (a: Link, b: Link) -> Bool { a.parent === b.parent && a.index == b.index }

    func hash(into hasher: inout Hasher) {
      hasher.combine(ObjectIdentifier(parent))
      hasher.combine(index)
    }
  }

  // Most models have one parent, which is stored here; the others are stored elsewhere.
  private unowned(unsafe) var firstParent: ModelRecord?
  private var others: Others?
  private var firstIndex: Int32 = 0

  private final class Others {
    var links: ContiguousArray<Link> = []
    /// The index of each link in `links`, once there are too many to search.
    var places: [Link: Int]?
    /// The number of further keys under which a dictionary holds the model, for the few that have any.
    var repeats: [Link: Int] = [:]

    var isEmpty: Bool { links.isEmpty && repeats.isEmpty }

    static let searchLimit = 16

    func add(_ link: Link) {
      places?[link] = links.count
      links.append(link)
      if places == nil, links.count > Self.searchLimit {
        places = Dictionary(uniqueKeysWithValues: links.enumerated().map { ($1, $0) })
      }
    }

    func has(_ link: Link) -> Bool {
      places.map { $0[link] != nil } ?? links.contains(link)
    }

    /// Removes a repetition of a link. Returns false if there was none.
    func removeRepeat(_ link: Link) -> Bool {
      guard !repeats.isEmpty, let count = repeats[link] else { return false }
      repeats[link] = count == 1 ? nil : count - 1
      return true
    }

    /// Removes a link, and moves the last one to its index. Returns false if there was none.
    func remove(_ link: Link) -> Bool {
      guard let place = places.map({ $0[link] }) ?? links.firstIndex(of: link) else { return false }
      places?[link] = nil
      let last = links.removeLast()
      if place < links.count {
        links[place] = last
        places?[last] = place
      }
      return true
    }

    func removeLast() -> Link? {
      let last = links.popLast()
      if let last { places?[last] = nil }
      return last
    }
  }

  private var first: Link? {
    get { firstParent.map { Link(parent: $0, index: Int(firstIndex)) } }
    set {
      firstParent = newValue?.parent
      firstIndex = Int32(newValue?.index ?? 0)
    }
  }

  var isEmpty: Bool { firstParent == nil }
  var count: Int { isEmpty ? 0 : (others?.links.count ?? 0) + 1 }

  mutating func add(_ link: Link) {
    if isEmpty {
      first = link
      return
    }
    let others = others ?? Others()
    self.others = others
    others.add(link)
  }

  /// Adds a link that may be there already, since a dictionary can hold a model under several keys. Returns true if it was
  /// there. Links that are there count as one.
  mutating func addRepeatable(_ link: Link) -> Bool {
    guard first == link || others?.has(link) == true else {
      add(link)
      return false
    }
    let others = others ?? Others()
    self.others = others
    others.repeats[link, default: 0] += 1
    return true
  }

  /// The effect of the removal of a link.
  enum Removal {
    /// There was no such link.
    case none
    /// The link is still there, as often as it was added besides.
    case repeated
    case last
  }

  /// Removes a link.
  @discardableResult
  mutating func remove(_ link: Link) -> Removal {
    if let others, others.removeRepeat(link) {
      if others.isEmpty { self.others = nil }
      return .repeated
    }
    if first == link {
      first = others?.removeLast()
      if others?.isEmpty == true { others = nil }
      return .last
    }
    return others?.remove(link) == true ? .last : .none
  }

  /// Returns the link at `place`; nil beyond the last.
  func link(at place: Int) -> Link? {
    if place == 0 { return first }
    guard let others, place <= others.links.count else { return nil }
    return others.links[place - 1]
  }

  func forEach(_ body: (Link) -> Void) {
    if let first { body(first) }
    for link in others?.links ?? [] { body(link) }
  }

  var all: [Link] { (first.map { [$0] } ?? []) + (others?.links ?? []) }
}
