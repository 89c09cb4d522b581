import Foundation

/// Divides the fragments of a large change set into messages for a server of version 1, which crashes on a message
/// with some hundreds of additions.
///
/// Such a server refuses an addition that nothing in its message or in the scope refers to, a reference to a model
/// that it does not have, and a change of a model that the same message adds; and after each message it drops models
/// that nothing refers to any more. So additions come first, parents before children, each in the same message as
/// the change that puts it into its collection, as far as that collection has been sent. Nothing is removed from a
/// collection before the last message, which has the changes of references and collections as they were made, so
/// that the models that the change set moves are held by something all the time.
///
/// Only the additions below a single reference of a shared model, and the changes of collections and references
/// themselves, can make a message larger than the limit.
struct SetSplitter {
  /// A part of a fragment.
  struct Piece {
    /// The fragment's position in the change set.
    let origin: Int
    let fragment: SyncFragment
    /// True if no later message has a part of the same fragment.
    var isLast = true
  }

  /// A fragment, with its position in the change set.
  typealias Source = (origin: Int, fragment: SyncFragment)

  private let sources: [Source]
  private let limit: Int
  /// Returns the value of a property before the change set.
  private let before: (SyncFragment, String) -> JSONValue?
  /// The positions of the additions, by their UUIDs as text.
  private var added: [String: Int] = [:]
  /// The fragment through which each addition was found.
  private var holders: [Int: Int] = [:]
  /// The additions that are in a message.
  private var sent: Set<String> = []
  /// The values of additions and of changed collections that are in a message.
  private var told: [Int: JSONObject] = [:]
  /// The message that is being filled: its additions, the fragments that hold them, and other pieces.
  private var open: (additions: [Int], members: Set<Int>, holders: Set<Int>, rest: [Piece]) =
    ([], [], [], [])
  private var messages: [[Piece]] = []

  /// Divides fragments with values into messages of at most `limit` fragments.
  ///
  /// - Parameters:
  ///   - isStructural: returns true if a property may hold models.
  ///   - before: returns the value of a property before the change set.
  static func split(
    _ sources: [Source], limit: Int, isStructural: (SyncFragment, String) -> Bool,
    before: @escaping (SyncFragment, String) -> JSONValue?
  ) -> [[Piece]] {
    var splitter = SetSplitter(sources: sources, limit: max(2, limit), before: before)
    splitter.run(isStructural)
    var messages = splitter.messages
    var later: Set<Int> = []
    for message in messages.indices.reversed() {
      for at in messages[message].indices.reversed() {
        messages[message][at].isLast = later.insert(messages[message][at].origin).inserted
      }
    }
    return messages
  }

  private init(
    sources: [Source], limit: Int, before: @escaping (SyncFragment, String) -> JSONValue?
  ) {
    (self.sources, self.limit, self.before) = (sources, limit, before)
  }

  private mutating func run(_ isStructural: (SyncFragment, String) -> Bool) {
    for (at, source) in sources.enumerated() where source.fragment.kind == .add {
      added[source.fragment.uuid.wireText] = at
    }
    var (plain, structural): ([Int], [Int]) = ([], [])
    for (at, source) in sources.enumerated() where source.fragment.kind == .change {
      let isPlain = !source.fragment.properties.contains {
        isStructural(source.fragment, $0.key) || !additions(in: $0.value).isEmpty
      }
      if isPlain { plain.append(at) } else { structural.append(at) }
    }
    let order = structural.flatMap { additions(below: $0) }
    for at in order { place(addition: at) }
    for at in plain { place(Piece(origin: sources[at].origin, fragment: sources[at].fragment)) }
    let others = added.values.filter { holders[$0] == nil }.sorted()
    complete(order)
    finish(additions: others, structural, completing: order)
  }

  // MARK: Finding additions

  private func additions(in value: JSONValue) -> [Int] {
    switch value {
    case .string(let text): added[text].map { [$0] } ?? []
    case .array(let elements): elements.flatMap { additions(in: $0) }
    default: []
    }
  }

  /// Returns the additions in the collections of a change and everything below them, parents first.
  private mutating func additions(below change: Int) -> [Int] {
    var (order, stack): ([Int], [Int]) = ([], [change])
    while let at = stack.popLast() {
      let fragment = sources[at].fragment
      if fragment.kind == .add { order.append(at) }
      var found: [Int] = []
      for (_, value) in fragment.properties {
        if fragment.kind == .change, case .string = value { continue }
        for child in additions(in: value) where child != at && holders[child] == nil {
          holders[child] = at
          found.append(child)
        }
      }
      stack += found.reversed()
    }
    return order
  }

  // MARK: Filling messages

  private var openCount: Int { open.additions.count + open.holders.count + open.rest.count }

  private mutating func place(addition at: Int) {
    let holder = holders[at]!
    var isHeld = open.members.contains(holder) || open.holders.contains(holder)
    if openCount + (isHeld ? 1 : 2) > limit {
      close()
      isHeld = false
    }
    open.additions.append(at)
    open.members.insert(at)
    if !isHeld { open.holders.insert(holder) }
    sent.insert(sources[at].fragment.uuid.wireText)
  }

  private mutating func place(_ piece: Piece) {
    if openCount == limit { close() }
    open.rest.append(piece)
  }

  private mutating func close() {
    if openCount == 0 { return }
    messages.append(takeOpen())
  }

  /// Removes and returns the pieces of the open message.
  ///
  /// - Parameter whole: the changes that the message contains as a whole.
  private mutating func takeOpen(without whole: Set<Int> = []) -> [Piece] {
    var pieces: [Piece] = []
    for at in open.additions {
      var fragment = sources[at].fragment
      fragment.properties = values(of: at)
      told[at] = fragment.properties
      pieces.append(Piece(origin: sources[at].origin, fragment: fragment))
    }
    for at in open.holders.sorted() where !whole.contains(at) {
      if let piece = change(of: at) { pieces.append(piece) }
    }
    pieces += open.rest
    open = ([], [], [], [])
    return pieces
  }

  /// Returns the part of a fragment that can be sent by now and has not been sent yet; nil if there is none.
  private mutating func change(of at: Int) -> Piece? {
    let fragment = sources[at].fragment
    let isAddition = fragment.kind == .add
    var values = values(of: at)
    values.removeAll { key, value in
      let concerns =
        isAddition || fragment.properties[key].map { !additions(in: $0).isEmpty } ?? false
      return !concerns || value == told[at]?[key]
    }
    if values.isEmpty { return nil }
    for (key, value) in values { told[at, default: [:]][key] = value }
    return Piece(
      origin: sources[at].origin,
      fragment: SyncFragment(
        .change, uuid: fragment.uuid, className: fragment.className, properties: values))
  }

  /// Returns the values of a fragment, without the additions that are in no message yet.
  private func values(of at: Int) -> JSONObject {
    let fragment = sources[at].fragment
    var result = fragment.properties
    result.removeAll { _, value in
      if case .string = value { !isSent(value) } else { false }
    }
    for (key, value) in fragment.properties {
      guard case .array(let elements) = value, !additions(in: value).isEmpty else { continue }
      result[key] = .array(
        fragment.kind == .add
          ? elements.filter(isSent)
          : growing(elements, from: before(fragment, key)))
    }
    return result
  }

  private func isSent(_ element: JSONValue) -> Bool {
    guard case .string(let text) = element, added[text] != nil else { return true }
    return sent.contains(text)
  }

  /// Returns a collection as it was before, plus those additions that are in a message.
  private func growing(_ elements: [JSONValue], from before: JSONValue?) -> [JSONValue] {
    guard case .array(let old)? = before else { return elements.filter(isSent) }
    let known = Set(old)
    let new = elements.filter {
      if case .string(let text) = $0 { sent.contains(text) && !known.contains($0) } else { false }
    }
    if elements.filter(known.contains) == old {
      let shown = known.union(new)
      return elements.filter(shown.contains)
    }
    return old + new
  }

  // MARK: The end

  /// Adds the values of additions that could not be sent when they were placed.
  private mutating func complete(_ order: [Int]) {
    let isComplete = order.allSatisfy {
      open.members.contains($0) || values(of: $0) == told[$0] ?? [:]
    }
    if isComplete { return }
    close()
    for at in order { if let piece = change(of: at) { place(piece) } }
  }

  /// Fills the last message.
  private mutating func finish(
    additions others: [Int], _ structural: [Int], completing order: [Int]
  ) {
    let isOpenNeeded = !others.isEmpty && !open.additions.isEmpty
    if isOpenNeeded || openCount + others.count + structural.count > limit { close() }
    for at in others {
      open.additions.append(at)
      sent.insert(sources[at].fragment.uuid.wireText)
    }
    if !others.isEmpty {
      for at in order { if let piece = change(of: at) { open.rest.append(piece) } }
    }
    var last = takeOpen(without: Set(structural))
    last += structural.map { Piece(origin: sources[$0].origin, fragment: sources[$0].fragment) }
    if !last.isEmpty { messages.append(last) }
  }
}
