import Foundation
import Jetstream
import JetstreamServer

final class Part: ModelObject {
  @Property var color = RGBAColor(rgba: 0xFF)
}

class Shape: ModelObject {
  @Property var x: Float = 0
  @Property var y: Float = 0
  @Property var color = RGBAColor(rgba: 0xFF)
  @Property var parts: ModelArray<Part> = []
  var area: Float { x * y }
  var isEmpty: Bool { parts.isEmpty }
  func hides(_ other: Shape) -> Bool { false }
}

final class Canvas: ModelObject {
  @Property var title = ""
  @Property var selected: Shape?
  @Property var shapes: ModelArray<Shape> = []
}

final class Arrow: ModelObject {
  @WeakReference var target: Shape?
}

final class Member: ModelObject {
  @Property var score = 0
}

final class Team: ModelObject {
  @Property var members: ModelDictionary<String, Member> = [:]
}

final class Project: ModelObject {
  @Property var name = ""
}

final class Todo: ModelObject {
  @Property var title = ""
  @Property var isDone = false
  @Property var due = Date.distantFuture
  @Property var priority = 0
  @Property var minutes = 0
  @Property var project: Project?
}

final class Message: ModelObject {
  @Property var date = Date.distantPast
}

final class Product: ModelObject {
  @Property(.range(0...100)) var quantity = 1
}

final class Order: ModelObject {
  @Property var number = 0
}

final class Item: ModelObject {
  @Property var stock = 0
  @Property var price = 0
}

final class Shop: ModelObject {
  @Property var items: ModelArray<Item> = []
}

final class Cart: ModelObject {
  @Property var isOrdered = false
}

struct Sell: Procedure {
  static let name = "Shop.sell"
  let item: UUID
  let count: Int

  enum Failure: Error, Codable { case soldOut(left: Int) }

  func run(on shop: Shop) throws(Failure) -> Int { 0 }
}

struct Text {
  var text = ""

  init(_ text: String) {}
}

struct Logger {
  func warning(_ text: String) {}
}

struct Battery: Sendable {
  let isLow = false
}

struct Tokens: Sendable {
  let current = ""

  func refresh() async throws {}
}

struct List {
  func apply(_ update: LiveUpdate<Todo, Int>) {}
}

extension [Shape] {
  mutating func apply(_ difference: CollectionDifference<Shape>) {}
}

func render(_ x: Float, _ y: Float, _ colors: [RGBAColor]) {}
func draw(to shape: Shape) {}
func drawStub(_ uuid: UUID) {}

@MainActor
final class Listing {
  var rows: [Shape] = []
  var label = Text("")
  var badge = Text("")
  let logger = Logger()
  let list = List()

  func redraw() {}
  func animate(from old: Float, to new: Float) {}
  func check(_ area: Float) {}
  func log(_ changeSet: ChangeSet) {}
  func store(_ changeSet: ChangeSet) {}
  func mark(_ changeSet: ChangeSet, _ state: ChangeSetHandle.State) {}
  func log(_ key: String, _ value: Any) {}
  func show(_ value: Any) {}

  func run(
    _ canvas: Canvas, _ shape: Shape, _ circle: Shape, _ arrow: Arrow, _ team: Team, _ ada: Member,
    _ product: Product, _ order: Order, _ cart: Cart, _ id: UUID, _ scope: Scope, _ then: Scope,
    _ draft: Scope, _ published: Scope, _ board: Scope, _ conflict: Conflict, _ client: Client,
    _ server: Server, _ log: FragmentLog, _ path: String, _ ticker: Ticker, _ tokens: Tokens,
    _ query: Query<Todo>, _ rowsToken: ObservationToken, _ model: ModelObject,
    _ battery: Battery
  ) async throws {
    do {
      // listing
    }
  }
}
