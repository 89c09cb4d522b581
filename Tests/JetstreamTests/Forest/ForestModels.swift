import Foundation
import Synchronization

@testable import Jetstream

/// A value of the app's own.
struct ForestSpot: CodableValue {
  var x = 0
  var y = 0
}

/// A node of the forest: every kind of property.
class Plant: ModelObject {
  /// How many there are.
  static let alive = Atomic<Int>(0)

  @Property var number = 0
  @Property var title: String?
  @Property var counts: [Int] = []
  @Property var sizes: [String: Double] = [:]
  @Property var spot = ForestSpot()
  @Property(.local) var note = 0
  @Property(.minSyncInterval(.milliseconds(40))) var heat = 0
  @Property(.counter) var count = 0
  @Property var left: Plant?
  @Property var right: Plant?
  @Property var items: ModelArray<Plant> = []
  @Property var others: ModelArray<Plant> = []
  @Property(.local) var picks: ModelArray<Plant> = []
  @WeakReference var friend: Plant?

  required init() {
    super.init()
    Plant.alive.add(1, ordering: .relaxed)
  }

  deinit { Plant.alive.subtract(1, ordering: .relaxed) }

  /// A composite over the model and what it holds.
  var total: Int { items.reduce(number + (left?.number ?? 0)) { $0 + $1.number } }

  /// One that reads the one or the other.
  var chosen: Int { (number.isMultiple(of: 2) ? left : right)?.number ?? -1 }

  /// One that reads a composite of others.
  var deep: Int { items.reduce(0) { $0 + $1.total } }
}

/// A plant with something more, and with a reference to its own class only.
final class Bush: Plant {
  @Property var height = 0
  @Property var crown: Bush?
}

enum ReferenceKey: String, CaseIterable { case left, right, crown }

enum CompositeKey: CaseIterable { case total, chosen, deep }

enum ListKey: String, CaseIterable { case items, others, picks }

/// The plain values of a plant.
struct PlainValues: Equatable {
  var number = 0
  var title: String?
  var counts: [Int] = []
  var sizes: [String: Double] = [:]
  var spot = ForestSpot()
  var note = 0
  var heat = 0
  var count = 0
  var height = 0

  /// The values by the names of their properties, as texts.
  var texts: [(key: String, text: String)] {
    [
      ("number", "\(number)"), ("title", title ?? "nil"), ("counts", "\(counts)"),
      ("sizes", "\(sizes.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" })"),
      ("spot", "\(spot.x),\(spot.y)"), ("note", "\(note)"), ("heat", "\(heat)"),
      ("count", "\(count)"), ("height", "\(height)"),
    ]
  }
}

extension Plant {
  var plain: PlainValues {
    PlainValues(
      number: number, title: title, counts: counts, sizes: sizes, spot: spot, note: note,
      heat: heat, count: count, height: (self as? Bush)?.height ?? 0)
  }

  /// Reads or writes a reference; what does not fit its class is a mistake of the test.
  subscript(key: ReferenceKey) -> Plant? {
    get {
      switch key {
      case .left: left
      case .right: right
      case .crown: (self as? Bush)?.crown
      }
    }
    set {
      switch key {
      case .left: left = newValue
      case .right: right = newValue
      case .crown: (self as! Bush).crown = newValue.map { $0 as! Bush }
      }
    }
  }

  subscript(key: ListKey) -> ModelArray<Plant> {
    get {
      switch key {
      case .items: items
      case .others: others
      case .picks: picks
      }
    }
    set {
      switch key {
      case .items: items = newValue
      case .others: others = newValue
      case .picks: picks = newValue
      }
    }
  }

  /// Changes a reference in place.
  func change(_ key: ReferenceKey, _ body: (inout Plant?) -> Void) {
    switch key {
    case .left: body(&left)
    case .right: body(&right)
    case .crown: preconditionFailure("The crown is of another class.")
    }
  }

  /// Changes a collection in place.
  func change(_ key: ListKey, _ body: (inout ModelArray<Plant>) -> Void) {
    switch key {
    case .items: body(&items)
    case .others: body(&others)
    case .picks: body(&picks)
    }
  }

  static func path(_ key: ReferenceKey) -> KeyPath<Plant, Plant?> {
    key == .left ? \.left : \.right
  }

  static func path(_ key: CompositeKey) -> KeyPath<Plant, Int> {
    switch key {
    case .total: \.total
    case .chosen: \.chosen
    case .deep: \.deep
    }
  }

  static func path(_ key: ListKey) -> KeyPath<Plant, ModelArray<Plant>> {
    switch key {
    case .items: \.items
    case .others: \.others
    case .picks: \.picks
    }
  }
}
