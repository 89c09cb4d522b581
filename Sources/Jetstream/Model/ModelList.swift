/// The storage of a ``ModelArray``, without its element type. Not used directly.
///
/// The models stand in chunks of at most 512. Chunks, the table of where they start and the index of
/// which model is in which chunk are values that are copied when they are shared, one chunk and one
/// part of the index at a time. So an insertion, a removal, a move or `index(of:)` costs O(sqrt n)
/// for up to some millions of models, also while somebody holds a copy of the list.
public struct ModelList {
  final class Storage {
    var chunks: ContiguousArray<ContiguousArray<ModelObject>>
    var chunkNames: ContiguousArray<Int32>
    var starts: ContiguousArray<Int>
    var count: Int
    var nextName: Int32
    var index: ChunkIndex
    /// Set while a lease writes down what happens to this storage. Unowned, because the lease clears
    /// it when it ends; a storage that ends first leaves its content with the lease.
    unowned(unsafe) var lease: ListLease?

    init() {
      chunks = []
      chunkNames = []
      starts = []
      count = 0
      nextName = 0
      index = ChunkIndex()
    }

    init(copying other: Storage) {
      chunks = other.chunks
      chunkNames = other.chunkNames
      starts = other.starts
      count = other.count
      nextName = other.nextName
      index = other.index
    }

    deinit { lease?.storageEnds(chunks: chunks) }
  }

  private(set) var storage: Storage?

  init() {}

  init(_ models: some Sequence<ModelObject>) {
    for model in models { append(model) }
  }

  var count: Int { storage?.count ?? 0 }

  /// Whether two lists share everything, which makes them equal at no cost.
  func isIdentical(to other: ModelList) -> Bool { storage === other.storage }

  subscript(position: Int) -> ModelObject {
    guard let storage, position >= 0, position < storage.count else {
      preconditionFailure("Index \(position) is out of range of a ModelArray of \(count) models.")
    }
    let chunk = storage.chunk(containing: position)
    return storage.chunks[chunk][position - storage.starts[chunk]]
  }

  /// Where `model` stands. Cost: O(sqrt n).
  func index(of model: ModelObject) -> Int? {
    guard let storage, let chunk = storage.chunk(of: model) else { return nil }
    return storage.chunks[chunk].firstIndex { $0 === model }.map { storage.starts[chunk] + $0 }
  }

  func contains(_ model: ModelObject) -> Bool { storage?.chunk(of: model) != nil }

  /// All models in order. Cost: O(n).
  var models: ContiguousArray<ModelObject> {
    guard let storage else { return [] }
    if storage.chunks.count == 1 { return storage.chunks[0] }
    var result: ContiguousArray<ModelObject> = []
    result.reserveCapacity(storage.count)
    for chunk in storage.chunks { result.append(contentsOf: chunk) }
    return result
  }

  func forEach(_ body: (ModelObject) -> Void) {
    guard let storage else { return }
    for chunk in storage.chunks { for model in chunk { body(model) } }
  }

  func isSame(as other: ModelList) -> Bool {
    if isIdentical(to: other) { return true }
    guard count == other.count else { return false }
    var iterator = Iterator(other)
    var same = true
    for chunk in storage?.chunks ?? [] {
      for model in chunk where model !== iterator.next() { same = false }
      if !same { return false }
    }
    return true
  }

  // MARK: Changing

  /// Adds `model` at the end; false, and nothing happens, if it is in the list already.
  @discardableResult
  mutating func append(_ model: ModelObject) -> Bool { insert(model, at: count) }

  @discardableResult
  mutating func insert(_ model: ModelObject, at position: Int) -> Bool {
    precondition(
      position >= 0 && position <= count,
      "Position \(position) is out of range of a ModelArray of \(count) models.")
    if contains(model) { return false }
    let storage = uniqueStorage()
    storage.insert(model, at: position)
    storage.lease?.operations.append(.insert(model, at: position))
    return true
  }

  @discardableResult
  mutating func remove(at position: Int) -> ModelObject {
    precondition(
      position >= 0 && position < count,
      "Index \(position) is out of range of a ModelArray of \(count) models.")
    let storage = uniqueStorage()
    let model = storage.remove(at: position)
    storage.lease?.operations.append(.remove(model, at: position))
    return model
  }

  /// Moves a model; `target` is its index after the move.
  mutating func move(from position: Int, to target: Int) {
    precondition(
      position >= 0 && position < count && target >= 0 && target < count,
      "A move from \(position) to \(target) leaves the range of a ModelArray of \(count) models.")
    guard position != target else { return }
    let storage = uniqueStorage()
    let model = storage.remove(at: position)
    storage.insert(model, at: target)
    storage.lease?.operations.append(.move(model, from: position, to: target))
  }

  mutating func removeAll() {
    guard let storage, storage.count > 0 else { return }
    guard storage.lease != nil else {
      self.storage = nil
      return
    }
    for position in stride(from: count - 1, through: 0, by: -1) { remove(at: position) }
  }

  /// The storage, shared with no other list. A copy takes no lease along: the list that a lease was
  /// opened on was alone then, so a shared storage means that one of the two left it.
  mutating func uniqueStorage() -> Storage {
    guard storage != nil else {
      let fresh = Storage()
      storage = fresh
      return fresh
    }
    // Nothing may hold the storage while it is asked whether it is alone: `if let` would.
    if !isKnownUniquelyReferenced(&storage) { storage = Storage(copying: storage!) }
    return storage!
  }

  struct Iterator: IteratorProtocol {
    private let chunks: ContiguousArray<ContiguousArray<ModelObject>>
    private var chunk = 0
    private var offset = 0

    init(_ list: ModelList) { chunks = list.storage?.chunks ?? [] }

    mutating func next() -> ModelObject? {
      while chunk < chunks.count {
        if offset < chunks[chunk].count {
          offset += 1
          return chunks[chunk][offset - 1]
        }
        chunk += 1
        offset = 0
      }
      return nil
    }
  }
}
