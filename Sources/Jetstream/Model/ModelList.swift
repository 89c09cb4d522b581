/// The storage of a ``ModelArray``, without its element type.
///
/// The models are stored in chunks of at most 512. The chunks, the table of their start positions,
/// and the index from models to chunks are values that are copied when shared, one chunk and one
/// part of the index at a time. An insertion, a removal, a move or `index(of:)` therefore costs
/// O(sqrt n) for up to some millions of models, even while another copy of the list exists.
struct ModelList {
  final class Storage {
    var chunks: ContiguousArray<ContiguousArray<ModelObject>>
    var chunkNames: ContiguousArray<Int32>
    var starts: ContiguousArray<Int>
    var count: Int
    var nextName: Int32
    var index: ChunkIndex
    /// The lease that records the changes of this storage; nil if there is none. Unowned, because
    /// the lease clears it when it ends. A storage that is released first passes its content to the
    /// lease.
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

  /// Returns true if two lists share their storage, which makes them equal in O(1).
  func isIdentical(to other: ModelList) -> Bool { storage === other.storage }

  subscript(position: Int) -> ModelObject {
    guard let storage, position >= 0, position < storage.count else {
      preconditionFailure("Index \(position) is out of range of a ModelArray of \(count) models.")
    }
    let chunk = storage.chunk(containing: position)
    return storage.chunks[chunk][position - storage.starts[chunk]]
  }

  /// Returns the index of `model`; nil if it is not in the list. Cost: O(sqrt n).
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

  /// The UUIDs in order.
  var json: JSONValue { .array(models.map { .string($0.uuid.wireText) }) }

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

  /// Appends `model`. Returns false and does nothing if it is already in the list.
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

  /// Returns the storage after making it unique. A copy is made without a lease: a lease is only
  /// ever opened on a unique storage, so if it is shared now, one of the lists has left the lease.
  mutating func uniqueStorage() -> Storage {
    // No other reference to the storage may exist during the uniqueness check.
    if isKnownUniquelyReferenced(&storage) { return storage! }
    let fresh = storage.map { Storage(copying: $0) } ?? Storage()
    storage = fresh
    return fresh
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

extension ModelList: Equatable {
  /// Returns true if both lists hold the same models in the same order.
  static func == (a: ModelList, b: ModelList) -> Bool { a.isSame(as: b) }
}
