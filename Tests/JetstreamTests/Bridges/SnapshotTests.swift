import Foundation
import Testing

@testable import Jetstream

enum Grain: Int, PropertyValue { case fine, coarse }

/// Codes itself as text, and holds an object: not to be shared as it is.
struct Marking: PropertyValue, Equatable {
  final class Box { var text = "" }
  var box = Box()

  init(_ text: String) { box.text = text }

  static var _propertyType: _PropertyType { .string }
  var _jsonValue: JSONValue { .string(box.text) }
  static func _decode(_ json: JSONValue) -> Marking? {
    if case .string(let text) = json { Marking(text) } else { nil }
  }
  static func == (a: Marking, b: Marking) -> Bool { a.box.text == b.box.text }
}

struct Stamp: CodableValue {
  var note = ""
  var date = Date(timeIntervalSinceReferenceDate: 0)
}

class Sheet: ModelObject {
  @Property var number = 3
  @Property var wide: UInt64 = 1
  @Property(.wireName("rate")) var ratio = 0.5
  @Property var single: Float = 0
  @Property var title: String?
  @Property var date = Date(timeIntervalSinceReferenceDate: 0)
  @Property var id = UUID()
  @Property var color: RGBAColor = .red
  @Property var grain = Grain.fine
  @Property var dates: [Date] = []
  @Property var grains: [Grain] = []
  @Property var optional: Double?
  @Property var marking = Marking("m")
  @Property var stamp = Stamp()
  @Property var stamps: [String: [Stamp]] = [:]
  @Property(.local) var isOpen = false
  @WeakReference var related: Sheet?
  @Property var cover: Sheet?
  @Property var sheets: ModelArray<Sheet> = []

  /// Settable computed properties of the type of what they read, which are not what they read.
  var doubled: Int {
    get { number * 2 }
    set { number = newValue / 2 }
  }
  var heading: String? {
    get { title ?? "Untitled" }
    set { title = newValue }
  }
  var capped: Int {
    get { min(number, 100) }
    set { number = newValue }
  }
  var alias: Double {
    get { ratio }
    set { ratio = newValue }
  }
  var closedRelated: Sheet? {
    get { related?.isOpen == true ? nil : related }
    set { related = newValue }
  }
  var opposite: ModelArray<Sheet> {
    get { ModelArray(sheets.reversed()) }
    set { sheets = newValue }
  }
  var total: Int { number + sheets.reduce(0) { $0 + $1.total } }
  var firstNumber: Int { sheets[0].number }
  var first: Sheet? { sheets.first }
  var label: String { "\(title ?? "-") \(uuid == id)" }
  var relatedTitle: String { related?.title ?? "?" }
  var countBesideRelated: Int? { related?.related?.sheets.count }
  var named: ModelDictionary<String, Sheet> {
    var result: ModelDictionary<String, Sheet> = [:]
    for sheet in sheets { result[sheet.title ?? "-"] = sheet }
    return result
  }
  /// The sheets behind one that the getter makes.
  var framed: ModelArray<Sheet> {
    let frame = Sheet()
    frame.title = "frame"
    frame.cover = first
    return ModelArray([frame] + sheets)
  }
}

final class Poster: Sheet {
  @Property var price = 9
}

private func full() -> Sheet {
  let sheet = Sheet()
  sheet.number = -7
  sheet.wide = .max
  sheet.ratio = -0.0
  sheet.single = 0.1
  sheet.title = "e\u{301}"
  sheet.date = Date(timeIntervalSinceReferenceDate: 1e-7)
  sheet.color = .init(rgba: 0x1234_5678)
  sheet.grain = .coarse
  sheet.dates = [Date(timeIntervalSinceReferenceDate: 0.1 + 0.2)]
  sheet.grains = [.coarse, .fine]
  sheet.optional = .nan
  sheet.marking = Marking("x")
  sheet.stamp = Stamp(note: "n", date: Date(timeIntervalSinceReferenceDate: 1e-7))
  sheet.stamps = ["a": [sheet.stamp]]
  sheet.isOpen = true
  return sheet
}

/// Reads a snapshot where no actor is.
@concurrent private func elsewhere<Result: Sendable>(
  _ body: @Sendable () -> Result
) async -> Result { body() }

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct SnapshotTests {
  @Test("every value is the same, bit for bit, in another isolation domain") func values() async {
    let sheet = full()
    let id = sheet.id
    let uuid = sheet.uuid
    let frozen = sheet.snapshot()
    await elsewhere {
      #expect(frozen.uuid == uuid)
      #expect(frozen.className == "Sheet")
      #expect(frozen.number == -7)
      #expect(frozen.wide == .max)
      #expect(frozen.ratio.bitPattern == (-0.0).bitPattern)
      #expect(frozen.single == 0.1)
      #expect(frozen.title?.utf8.elementsEqual("e\u{301}".utf8) == true)
      #expect(frozen.date.timeIntervalSinceReferenceDate == 1e-7)
      #expect(frozen.id == id)
      #expect(frozen.color == .init(rgba: 0x1234_5678))
      #expect(frozen.grain == .coarse)
      #expect(frozen.dates[0].timeIntervalSinceReferenceDate == 0.1 + 0.2)
      #expect(frozen.grains == [.coarse, .fine])
      #expect(frozen.optional?.isNaN == true)
      #expect(frozen.stamp.date.timeIntervalSinceReferenceDate == 1e-7)
      #expect(frozen.stamps["a"]?.first?.date.timeIntervalSinceReferenceDate == 1e-7)
      #expect(frozen.isOpen)
      #expect(frozen.cover == nil)
      #expect(frozen.sheets.isEmpty)
    }
    #expect(Sheet().snapshot().title == nil)
    #expect(Sheet().snapshot().optional == nil)
    #expect(sheet.snapshot().makeModel().marking == Marking("x"))
  }

  @Test("A snapshot does not change with its model") func frozen() {
    let sheet = full()
    sheet.sheets = [full(), full()]
    sheet.cover = sheet.sheets[1]
    let frozen = sheet.snapshot()
    let again = sheet.snapshot()
    sheet.number = 1
    sheet.title = nil
    sheet.cover?.number = 2
    sheet.sheets.remove(at: 0)
    sheet.cover = nil
    #expect(frozen.number == -7)
    #expect(frozen.title == "e\u{301}")
    #expect(frozen.cover?.number == -7)
    #expect(frozen.sheets.map(\.number) == [-7, -7])
    #expect(frozen.cover == frozen.sheets[1])
    #expect(frozen == again)
    #expect(frozen.hashValue == again.hashValue)
    #expect(frozen != sheet.snapshot())
  }

  @Test("A snapshot leads back to its model, and a change there to another snapshot")
  func resolve() async {
    let sheet = full()
    let cover = Poster()
    sheet.cover = cover
    let scope = manualScope(sheet, models: [Poster.self])
    let frozen = sheet.snapshot()
    let (top, below) = await elsewhere { (frozen, frozen.cover!) }
    #expect(scope.model(top.uuid) === sheet)
    #expect(scope.model(below.uuid) === cover)
    #expect(below.cast(to: Poster.self)?.price == 9)
    #expect(top.cast(to: Poster.self) == nil)
    #expect(scope.model(below.cast(to: Poster.self)!.uuid) === cover)
    sheet.cover = nil
    #expect(scope.model(below.uuid) == nil)
    #expect(manualScope(Sheet()).model(top.uuid) == nil)
  }

  @Test("each model is copied once, also in cycles") func cycles() {
    let top = Sheet()
    let below = Sheet()
    top.sheets = [below, Sheet(), below]
    below.cover = top
    below.sheets = [below]
    let frozen = top.snapshot()
    #expect(frozen.graph.nodes.count == 3)
    #expect(frozen.sheets[0].cover == frozen)
    #expect(frozen.sheets[0].sheets[0].sheets[0].uuid == below.uuid)
    let copy = frozen.makeModel()
    #expect(copy.sheets[0].cover === copy)
    #expect(copy.sheets[0].sheets[0] === copy.sheets[0])
    #expect(copy.snapshot() == frozen)
    copy.sheets[1].number = 8
    #expect(copy.snapshot() != frozen)
    #expect(copy.snapshot().hashValue == frozen.hashValue)
    // Cut what would keep itself alive.
    for sheet in [top, below, copy, copy.sheets[0]] { sheet.sheets = [] }
  }

  @Test("weak references lead to what is in the snapshot, and to nothing else") func weak() {
    let sheet = full()
    let outside = Sheet()
    sheet.cover = full()
    sheet.related = sheet.cover
    sheet.cover!.related = outside
    let frozen = sheet.snapshot()
    #expect(frozen.related?.uuid == sheet.cover!.uuid)
    #expect(frozen.cover?.related == nil)
    #expect(frozen.graph.nodes.count == 2)
    let copy = frozen.makeModel()
    #expect(copy.related === copy.cover)
    #expect(copy.snapshot() == frozen)
    let duplicate = frozen.makeModel(keepingUUIDs: false)
    #expect(duplicate.related === duplicate.cover)
    withExtendedLifetime(outside) {}
  }

  @Test("A weak reference of a model below leads to its target anywhere in the snapshot")
  func weakBelow() {
    let (sheet, target, arrow, outside) = (Sheet(), full(), Sheet(), Sheet())
    sheet.sheets = [target, arrow]
    sheet.cover = Poster()
    arrow.related = target
    target.related = sheet
    let frozen = sheet.snapshot()
    #expect(frozen.sheets[1].related == frozen.sheets[0])
    #expect(frozen.sheets[1].related?.number == -7)
    #expect(frozen.sheets[1].related?.related == frozen)
    #expect(frozen.sheets[0].related?.related == nil)
    arrow.related = sheet.cover
    #expect(sheet.snapshot().sheets[1].related?.cast(to: Poster.self)?.price == 9)
    arrow.related = outside
    #expect(sheet.snapshot().sheets[1].related == nil)
    #expect(frozen.sheets[1].related == frozen.sheets[0])
    let alone = frozen.sheets[1].makeModel()
    #expect(alone.related == nil && alone.snapshot().related == nil)
  }

  @Test("A getter that makes something of a weak reference is not taken for it")
  func computedWeak() {
    let sheet = Sheet()
    #expect(sheet.snapshot().closedRelated == nil)
    sheet.cover = Sheet()
    sheet.related = sheet.cover
    #expect(sheet.snapshot().closedRelated == sheet.snapshot().cover)
    sheet.cover?.isOpen = true
    #expect(sheet.snapshot().closedRelated == nil)
  }

  @Test("a long chain is copied, compared and made without recursion") func chain() {
    let top = Sheet()
    var last = top
    for number in 0..<5_000 {
      let next = Sheet()
      next.number = number
      last.cover = next
      last = next
    }
    let frozen = top.snapshot()
    #expect(frozen == top.snapshot())
    #expect(frozen.fragments.count == 5_001)
    #expect(frozen.makeModel().snapshot() == frozen)
  }

  @Test("computed properties are what the getter makes of the copied values") func computed() async
  {
    let sheet = full()
    sheet.id = sheet.uuid
    sheet.title = nil
    sheet.sheets = [Sheet(), full()]
    let frozen = sheet.snapshot()
    for _ in 0..<2 {
      await elsewhere {
        #expect(frozen.doubled == -14)
        #expect(frozen.heading == "Untitled")
        #expect(frozen.capped == -7)
        #expect(frozen.alias.bitPattern == (-0.0).bitPattern)
        #expect(frozen.total == -11)
        #expect(frozen.firstNumber == 3)
        #expect(frozen.first == frozen.sheets[0])
        #expect(frozen.opposite.map(\.uuid) == frozen.sheets.map(\.uuid).reversed())
        #expect(frozen.label == "- true")
      }
    }
    sheet.number = 1_000
    sheet.title = "T"
    let later = sheet.snapshot()
    #expect(later.capped == 100)
    #expect(later.number == 1_000)
    #expect(later.heading == "T")
    #expect(later.doubled == 2_000)
  }

  @Test("a computed property that reads a second property for some values only is no stored one")
  func fallback() {
    final class Visitor: ModelObject {
      @Property var nickname = ""
      @Property var fullName = ""
      var shown: String {
        get { nickname.isEmpty ? fullName : nickname }
        set { nickname = newValue }
      }
    }
    let visitor = Visitor()
    visitor.nickname = "Al"
    #expect(visitor.snapshot().shown == "Al")
    visitor.nickname = ""
    visitor.fullName = "Ada"
    #expect(visitor.snapshot().shown == "Ada")
  }

  @Test("fragments are those of the model; JSON has local values too") func json() {
    let sheet = full()
    sheet.sheets = [full(), Sheet()]
    sheet.cover = sheet.sheets[0]
    let frozen = sheet.snapshot()
    #expect(frozen.fragments == sheet.subtreeFragments())
    guard case .object(let object) = frozen.json else {
      Issue.record("not an object")
      return
    }
    #expect(object["isOpen"] == true)
    #expect(object["cover"] == .string(sheet.sheets[0].uuid.wireText))
    #expect(object["sheets"] == sheet.sheets._jsonValue)
  }

  @Test("a model made of a snapshot has the UUIDs, or new ones, and no observers") func make() {
    let sheet = full()
    sheet.sheets = [full()]
    let scope = manualScope(sheet)
    let frozen = sheet.snapshot()
    let copy = frozen.makeModel()
    #expect(copy.scope == nil)
    #expect(copy.uuid == sheet.uuid && copy.sheets[0].uuid == sheet.sheets[0].uuid)
    #expect(copy.sheets[0].parents.first?.parent === copy)
    #expect(copy.snapshot() == frozen)
    let duplicate = frozen.makeModel(keepingUUIDs: false)
    #expect(duplicate.uuid != sheet.uuid && duplicate.sheets[0].uuid != sheet.sheets[0].uuid)
    #expect(duplicate.number == sheet.number && duplicate.sheets[0].grains == [.coarse, .fine])
    sheet.sheets.append(duplicate)
    #expect(duplicate.scope === scope)
    #expect(scope.takeFragments().map(\.kind) == [.add, .add, .change])
  }

  @Test("many readers at once resolve key paths to the same properties") func concurrent() async {
    let sheet = full()
    sheet.sheets = [Sheet()]
    let frozen = sheet.snapshot()
    await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<8 {
        group.addTask { @concurrent in
          (0..<200).allSatisfy { _ in
            frozen.number == -7 && frozen.wide == .max && frozen.sheets.count == 1
              && frozen.doubled == -14 && frozen.sheets[0].number == 3
          }
        }
      }
      for await isRight in group { #expect(isRight) }
    }
  }
}
