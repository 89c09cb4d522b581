import Foundation
import Synchronization
import Testing

@testable import Jetstream

/// Counts its living objects, which are in a ring.
private final class Ring: ModelObject {
  static let alive = Atomic(0)

  @Property var number = 1
  @Property var next: Ring?
  @Property var others: ModelArray<Ring> = []
  var sum: Int { number + (next?.number ?? 0) }
  var second: Ring? { next }
  var all: ModelArray<Ring> { ModelArray([self] + (next.map { [$0] } ?? [])) }
  var byNumber: ModelDictionary<Int, Ring> { [number: self] }

  required init() {
    super.init()
    Self.alive.add(1, ordering: .relaxed)
  }

  deinit { Self.alive.subtract(1, ordering: .relaxed) }
}

private struct Spot: CodableValue { var x, y: Int }

private enum Outline: String, PropertyValue { case none, thin, thick }

/// Has properties of types of which there are few values to try, and counts how many objects were made.
private final class Figure: ModelObject {
  static let made = Atomic(0)

  @Property var spot = Spot(x: 0, y: 0)
  @Property var spots: [Spot] = []
  @Property var outline = Outline.none
  @Property var inner: Outline?
  @Property var outlines: [Outline] = []
  @Property private(set) var size = 1
  @Property var parts: ModelArray<Figure> = []

  required init() {
    super.init()
    Self.made.add(1, ordering: .relaxed)
  }

  convenience init(_ outline: Outline, _ number: Int) {
    self.init()
    self.outline = outline
    (spot, spots, outlines) = (Spot(x: number, y: 1), [spot], [outline])
    inner = number == 0 ? nil : outline
    size = number
  }
}

/// Has a computed property that can be taken for the stored one, of a type of which there are few values to try.
private final class Mask: ModelObject {
  @Property var outline = Outline.none
  @Property var parts: ModelArray<Mask> = []
  @WeakReference var twin: Mask?

  /// Reads other properties for some outlines only.
  var shownOutline: Outline {
    get {
      switch outline {
      case .none: parts[0].outline
      case .thin: outline
      case .thick: twin!.parts[0].outline
      }
    }
    set { outline = newValue }
  }

  convenience init(_ outline: Outline, _ parts: [Mask] = []) {
    self.init()
    self.outline = outline
    self.parts = ModelArray(parts)
  }
}

/// Has getters that see the models below without reading the property that holds them.
private final class Tray: ModelObject {
  @Property var title = ""
  @Property var items: ModelArray<Tray> = []

  var label: String { title + " (\(snapshot().items.count))" }
  var keys: String { title + parents.map(\.key).joined() }
  // These two look at nothing else while the title is empty.
  var longLabel: String { title.isEmpty ? title : label }
  var longKeys: String { title.isEmpty ? title : keys }

  convenience init(_ title: String, _ items: [Tray] = []) {
    self.init()
    self.title = title
    self.items = ModelArray(items)
  }
}

/// Is made with a part, and remembers it.
private final class Crate: ModelObject {
  final class Memory { weak var part: Tray? }

  @Property var title = ""
  @Property var parts: ModelArray<Tray> = [Tray()]
  let memory = Memory()

  required init() {
    super.init()
    memory.part = parts.first
  }

  /// Looks at nothing else while the title is empty.
  var summary: String {
    if title.isEmpty { return title }
    let count = parts.count
    return "\(title) \(count) \(memory.part == nil ? "gone" : "there")"
  }
}

/// Computed properties, whose getters run on copies of the models of a snapshot.
extension SnapshotTests {
  /// Makes a sheet with two below it: the second one refers weakly to the first one, and that one to the sheet.
  private func linked() -> Sheet {
    let (top, target, arrow) = (Sheet(), Sheet(), Sheet())
    (top.title, target.title, arrow.title) = ("top", "target", "arrow")
    target.related = top
    arrow.related = target
    top.sheets = [target, arrow]
    return top
  }

  @Test("A getter of a model below finds the targets of weak references anywhere in the snapshot")
  func computedWeakBelow() {
    let top = linked()
    let frozen = top.snapshot()
    #expect(frozen.relatedTitle == "?")
    #expect(frozen.sheets[0].relatedTitle == "top")
    #expect(frozen.sheets[1].relatedTitle == "target")
    #expect(frozen.sheets[1].countBesideRelated == 2)
    let outside = Sheet()
    outside.title = "outside"
    top.sheets[1].related = outside
    #expect(top.snapshot().sheets[1].relatedTitle == "?")
    #expect(frozen.sheets[1].relatedTitle == "target")
  }

  @Test("The models that a getter returns are those of the snapshot, unless it has made them")
  func computedModels() {
    let frozen = linked().snapshot()
    #expect(frozen.first?.related == frozen.sheets[0].related)
    #expect(frozen.first?.related == frozen)
    #expect(frozen.opposite.map(\.relatedTitle) == ["target", "top"])
    #expect(frozen.opposite[0].related == frozen.sheets[0])
    #expect(frozen.named["arrow"]?.related?.related == frozen)
    #expect(frozen.framed.map(\.title) == ["frame", "target", "arrow"])
    #expect(frozen.framed[0].cover == frozen.sheets[0])
    #expect(frozen.framed[1].related == frozen)
  }

  @Test("Nothing is left of the models that getters run on, also if they hold each other")
  func released() {
    let (top, next) = (Ring(), Ring())
    top.next = next
    next.next = top
    next.others = [top, next]
    defer { (next.next, next.others) = (nil, []) }
    let frozen = top.snapshot()
    let before = Ring.alive.load(ordering: .relaxed)
    for _ in 0..<2 {
      #expect(frozen.number == 1 && frozen.sum == 2)
      #expect(frozen.second == frozen.next)
      #expect(frozen.all[0] == frozen && frozen.all[1] == frozen.next)
      #expect(frozen.byNumber[1]?.others.isEmpty == true)
      #expect(frozen.next?.others.count == 2)
    }
    #expect(Ring.alive.load(ordering: .relaxed) == before)
  }

  @Test("A stored property is read without the models below, also if its type has few values")
  func fewValues() {
    let top = Figure(.thick, 0)
    top.parts = [Figure(.thin, 1), Figure(.none, 2)]
    top.parts[1].parts = [Figure(.thick, 3)]
    let frozen = top.snapshot()
    let reads: [(ModelSnapshot<Figure>) -> Void] = [
      { _ = $0.spot }, { _ = $0.spots }, { _ = $0.outline }, { _ = $0.inner }, { _ = $0.outlines },
      { _ = $0.size },
    ]
    for (number, read) in reads.enumerated() {
      read(frozen)
      for figure in [frozen, frozen.parts[0], frozen.parts[1]] {
        let before = Figure.made.load(ordering: .relaxed)
        read(figure)
        #expect(Figure.made.load(ordering: .relaxed) <= before + 1, "read \(number)")
      }
    }
    #expect(frozen.parts.map(\.spot) == top.parts.map(\.spot))
    #expect(frozen.parts.map(\.spots) == top.parts.map(\.spots))
    #expect(frozen.parts.map(\.outline) == [.thin, .none])
    #expect(frozen.inner == nil && frozen.parts.map(\.inner) == [.thin, Outline.none])
    #expect(frozen.parts.map(\.outlines) == [[.thin], [.none]])
    #expect(frozen.parts.map(\.size) == [1, 2])
  }

  @Test("A getter that looks like a stored property finds the models below when it reads them")
  func seeminglyStored() {
    let top = Mask(.thick, [Mask(.thin), Mask(.none, [Mask(.thick)])])
    top.parts[1].parts[0].twin = top
    let frozen = top.snapshot()
    #expect(frozen.parts[0].shownOutline == .thin)
    #expect(frozen.parts[1].shownOutline == .thick)
    #expect(frozen.parts[1].parts[0].shownOutline == .thin)
    #expect(frozen.parts[0].shownOutline == .thin)
  }

  @Test("A getter that takes a snapshot of its model, or asks for its parents, finds all models")
  func unreported() {
    let below = Tray("")
    let top = Tray("top", [below, Tray("last")])
    below.items = [top]
    defer { below.items = [] }
    let frozen = top.snapshot()
    for _ in 0..<2 {
      #expect(frozen.items[1].label == "last (0)")
      #expect(frozen.label == "top (2)")
      #expect(frozen.keys == "topitems")
      #expect(frozen.items[0].longLabel == "" && frozen.items[0].longKeys == "")
      #expect(frozen.longLabel == "top (2)")
      #expect(frozen.longKeys == "topitems")
    }
  }

  @Test("The models that the copies of a snapshot were made with exist until the getter has run")
  func replaced() {
    let crate = Crate()
    #expect(crate.snapshot().summary == "")
    crate.title = "full"
    crate.parts = [Tray("a"), Tray("b")]
    let frozen = crate.snapshot()
    #expect(frozen.summary == "full 2 there")
    let copy = frozen.makeModel()
    #expect(copy.memory.part == nil && copy.parts.count == 2)
  }
}
