import Foundation
import Testing

@testable import Jetstream

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
}
