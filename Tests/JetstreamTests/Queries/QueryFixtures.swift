import Foundation
import Testing

@testable import Jetstream

class Chore: ModelObject {
  @Property var title = ""
  @Property var priority = 0
  @Property var isDone = false
  @Property var due: Double?
  @Property var project: Project?
  @Property var parts: ModelArray<Chore> = []
  @Property var note = ""

  convenience init(_ title: String, priority: Int = 0) {
    self.init()
    self.title = title
    self.priority = priority
  }
}

final class Errand: Chore {
  @Property var place = ""
}

final class Project: ModelObject {
  @Property var name = ""
  @Property var color = 0

  convenience init(_ name: String) {
    self.init()
    self.name = name
  }
}

final class Workboard: ModelObject {
  @Property var chores: ModelArray<Chore> = []
  @Property var projects: ModelArray<Project> = []
  @Property var inbox: Chore?

  convenience init(_ titles: [String]) {
    self.init()
    chores = ModelArray(titles.map { Chore($0) })
  }
}

func boardScope(_ board: Workboard, isolation: (any Actor)? = #isolation) -> Scope {
  manualScope(board, models: [Errand.self], isolation: isolation)
}

/// Follows a query by its updates alone, and checks each of them.
final class RowFollower<Model: ModelObject> {
  var rows: [Model]
  private var old: [Model]
  var updates: [LiveUpdate<Model, Int>] = []
  private let query: LiveQuery<Model>

  init(_ query: LiveQuery<Model>, _ place: @escaping () -> String = { "" }) {
    self.query = query
    rows = Array(query.rows)
    old = rows
    query.observe(self) { [unowned query] me, update in
      #expect(
        !update.difference.isEmpty || !update.updated.isEmpty, "an empty update, \(place())")
      let new = me.rows.applying(update.difference)
      #expect(new != nil, "a difference that does not fit, \(place())")
      me.rows = new ?? []
      #expect(me.rows == Array(query.rows), "\(place())")
      #expect(update.updated == update.updated.sorted(), "\(place())")
      me.checkOffsets(update, new ?? [], place())
      #expect(update.updated.allSatisfy { me.rows.indices.contains($0) }, "\(place())")
      for move in update.moved { #expect(!update.updated.contains(move.to), "\(place())") }
      me.updates.append(update)
    }
  }

  /// The offsets lead to the same rows as the difference.
  private func checkOffsets(_ update: LiveUpdate<Model, Int>, _ new: [Model], _ place: String) {
    var rows = old
    for offset in (update.deleted + update.moved.map(\.from)).sorted().reversed() {
      rows.remove(at: offset)
    }
    for offset in (update.inserted + update.moved.map(\.to)).sorted() {
      rows.insert(new[offset], at: offset)
    }
    #expect(rows == new, "\(place)")
    for (from, to) in update.moved { #expect(old[from] === new[to], "\(place)") }
    old = new
  }

  /// What has come since the last time.
  func take() -> [LiveUpdate<Model, Int>] {
    defer { updates = [] }
    return updates
  }
}

/// Applies the updates of sections as a list view does, by paths alone.
final class SectionFollower<Key, Model: ModelObject> {
  var sections: [[Model]]
  var flat: [Model]
  var updates: [LiveUpdate<Model, IndexPath>] = []

  init(_ query: LiveSections<Key, Model>, _ place: @escaping () -> String = { "" }) {
    sections = query.sections.map { Array($0) }
    flat = Array(query.rows)
    query.observe(self) { [unowned query] me, update in
      me.flat = me.flat.applying(update.difference) ?? []
      #expect(me.flat == Array(query.rows), "\(place())")
      me.apply(update, query, place())
      me.updates.append(update)
    }
  }

  private func apply(
    _ update: LiveUpdate<Model, IndexPath>, _ query: LiveSections<Key, Model>, _ place: String
  ) {
    #expect(
      !update.difference.isEmpty || !update.updated.isEmpty, "an empty update, \(place)")
    var carried: [IndexPath: Model] = [:]
    for (from, to) in update.moved { carried[to] = sections[from[0]][from[1]] }
    for path in (update.deleted + update.moved.map(\.from)).sorted().reversed() {
      #expect(!update.deletedSections.contains(path[0]), "\(place)")
      sections[path[0]].remove(at: path[1])
    }
    for section in update.deletedSections.reversed() { sections.remove(at: section) }
    for section in update.insertedSections {
      sections.insert(Array(query.sections[section]), at: section)
    }
    for path in (update.inserted + update.moved.map(\.to)).sorted() {
      #expect(!update.insertedSections.contains(path[0]), "\(place)")
      sections[path[0]].insert(carried[path] ?? query[path], at: path[1])
    }
    let now = query.sections.map { Array($0) }
    #expect(sections == now, "\(place)")
    for path in update.updated { #expect(now[path[0]].indices.contains(path[1])) }
    sections = now
  }
}
