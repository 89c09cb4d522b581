import Foundation
import Synchronization
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// A value that counts how often it is made into JSON.
private struct Page: CodableValue {
  static let encodings = Encodings()
  var text = ""

  func encode(to encoder: any Encoder) throws {
    Self.encodings.count()
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }

  init(text: String = "") { self.text = text }

  init(from decoder: any Decoder) throws {
    text = try decoder.singleValueContainer().decode(String.self)
  }

  final class Encodings: Sendable {
    private let total = Mutex(0)
    var made: Int { total.withLock { $0 } }
    func count() { total.withLock { $0 += 1 } }
  }
}

private final class Binder: ModelObject {
  @Property var folders: ModelArray<Folder> = []
}

private final class Folder: ModelObject {
  @Property var page = Page()
  @Property var parts: ModelArray<Folder> = []
  @Property var byName: ModelDictionary<String, Folder> = [:]
  @Property var cover: Folder?
}

/// The effort of reading a model that has left and that some client may still put back.
@Suite("Departed models of a host")
struct DepartedEffortTests {
  private let binder = Binder()
  private let folder = Folder()
  private let scope: Scope
  private let content: ModelContent
  private let host: ScopeOrder

  init() {
    binder.folders = [folder]
    scope = Scope(name: "Binder", root: binder, ticker: .manual())
    content = ModelContent(scope)
    host = ScopeOrder(
      content: content, epoch: "e", streamLimit: .init(sets: 100, bytes: 100_000))
  }

  @discardableResult
  private func submit(_ fragments: [SyncFragment]) -> ScopeOrder.Result {
    scope.sealChanges()
    var submitter = ScopeOrder.Submitter(
      session: 1, proven: host.sequence, rebases: true, missed: .init())
    submitter.usesOperations = true
    return host.submit(fragments, isAtomic: false, by: submitter)
  }

  private func change(_ operation: PropertyOperation) -> SyncFragment {
    SyncFragment(
      .change, uuid: binder.uuid, className: "Binder", properties: [:],
      operations: ["folders": [operation]])
  }

  /// Has a client remove the folder, and put it back with another change set.
  private func effortOfPuttingBack(
    _ properties: JSONObject = [:], bases: JSONObject = [:]
  ) -> Int {
    #expect(submit([change(.remove(folder.uuid))]).replies == [FragmentReply()])
    #expect(binder.folders.isEmpty)
    let addition = SyncFragment(
      .add, uuid: folder.uuid, className: "Folder", properties: properties, bases: bases)
    let result = submit([addition, change(.insert(folder.uuid, .end))])
    #expect(result.replies == [FragmentReply(), FragmentReply()])
    #expect(binder.folders.first === folder)
    return result.effort
  }

  private func fillDictionary(_ count: Int) {
    let part = Folder()
    folder.parts = [part]
    for at in 0..<count { folder.byName["entry \(at)"] = part }
  }

  @Test("Naming the entries of a large dictionary that comes back is effort")
  func dictionary() {
    fillDictionary(1)
    let least = effortOfPuttingBack()
    fillDictionary(6_400)
    #expect(effortOfPuttingBack() > least + 500)
  }

  @Test("Merging the collection of a model that comes back is effort")
  func collection() {
    folder.parts = [Folder()]
    folder.cover = folder.parts[0]
    let part = folder.parts[0]
    let known: JSONObject = ["parts": .models(part.uuid)]
    let least = effortOfPuttingBack(known, bases: known)
    for _ in 0..<300 { folder.parts.append(Folder()) }
    // Those that come back with the model count as well.
    let without = effortOfPuttingBack(["cover": .string(part.uuid.wireText)])
    let with = effortOfPuttingBack(known, bases: known)
    #expect(least < 10 && with >= without + 300)
  }

  @Test("Looking for the models that it may bring back makes no JSON of its values")
  func names() {
    let (part, entry, cover, ghost) = (Folder(), Folder(), Folder(), UUID())
    (folder.parts, folder.byName["x"], folder.cover) = ([part], entry, cover)
    folder.page.text = "long"
    scope.sealChanges()
    scope.apply([
      SyncFragment(
        .change, uuid: folder.uuid, className: "Folder",
        properties: ["ghosts": .models(ghost)])
    ])
    submit([change(.remove(folder.uuid))])
    let before = Page.encodings.made
    var names: Set<UUID> = []
    content.forEachReturning { names.insert($0) }
    #expect(Page.encodings.made == before)
    #expect(
      names.isSuperset(of: [folder.uuid, part.uuid, entry.uuid, cover.uuid, ghost]))
  }
}
