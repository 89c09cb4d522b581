import Foundation

@testable import Jetstream

/// What a closure of a draft throws.
struct Oops: Error {}

/// A model whose changes belong together.
final class Draft: ModelObject {
  @Property var title = ""
  @Property(.local) var isOpen = false
  @Property(.local) var scratch: Draft?
  @Property(.local) var clippings: ModelArray<Draft> = []
  @Property var parts: ModelArray<Draft> = []
  @Property(.counter) var stars = 0
  @Property(.minSyncInterval(.seconds(10))) var position = 0.0

  convenience init(_ title: String) {
    self.init()
    self.title = title
  }
}
