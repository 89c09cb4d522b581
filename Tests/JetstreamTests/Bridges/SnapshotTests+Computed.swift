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
}
