extension ModelList.Storage {
  /// The maximum number of models in a chunk.
  static var chunkCapacity: Int { 512 }
  /// The maximum size of a list that is searched without an index.
  static var indexThreshold: Int { 32 }

  /// Returns the chunk that contains the position `position`. Cost: O(log n).
  func chunk(containing position: Int) -> Int {
    var low = 0
    var high = starts.count - 1
    // Lists that only grew at the end have full chunks, so the first guess is right.
    let guess = min(position / Self.chunkCapacity, high)
    if starts[guess] <= position, guess == high || position < starts[guess + 1] { return guess }
    while low < high {
      let middle = (low + high + 1) / 2
      if starts[middle] <= position { low = middle } else { high = middle - 1 }
    }
    return low
  }

  func chunk(of model: ModelObject) -> Int? {
    if index.isInUse {
      return index[ObjectIdentifier(model)].flatMap { chunkNames.firstIndex(of: $0) }
    }
    return chunks.firstIndex { $0.contains { $0 === model } }
  }

  func insert(_ model: ModelObject, at position: Int) {
    if chunks.isEmpty { addChunk([], at: 0, start: 0) }
    var chunk = position == count ? chunks.count - 1 : chunk(containing: position)
    if chunks[chunk].count == Self.chunkCapacity {
      if position == count {
        addChunk([], at: chunk + 1, start: count)
        chunk += 1
      } else {
        split(chunk)
        if position > starts[chunk + 1] { chunk += 1 }
      }
    }
    let offset = position - starts[chunk]
    chunks[chunk].insert(model, at: offset)
    count += 1
    for later in (chunk + 1)..<max(chunk + 1, starts.count) { starts[later] += 1 }
    if index.isInUse {
      index[ObjectIdentifier(model)] = chunkNames[chunk]
    } else if count > Self.indexThreshold {
      rebuildIndex()
    }
  }

  func remove(at position: Int) -> ModelObject {
    let chunk = chunk(containing: position)
    let model = chunks[chunk].remove(at: position - starts[chunk])
    count -= 1
    for later in (chunk + 1)..<max(chunk + 1, starts.count) { starts[later] -= 1 }
    if index.isInUse { index[ObjectIdentifier(model)] = nil }
    if chunks[chunk].isEmpty {
      dropChunk(chunk)
    } else if chunk + 1 < chunks.count,
      chunks[chunk].count + chunks[chunk + 1].count <= Self.chunkCapacity / 4
    {
      merge(chunk)
    }
    return model
  }

  private func addChunk(_ models: ContiguousArray<ModelObject>, at position: Int, start: Int) {
    chunks.insert(models, at: position)
    chunkNames.insert(nextName, at: position)
    starts.insert(start, at: position)
    nextName += 1
  }

  private func dropChunk(_ chunk: Int) {
    chunks.remove(at: chunk)
    chunkNames.remove(at: chunk)
    starts.remove(at: chunk)
  }

  private func split(_ chunk: Int) {
    let half = chunks[chunk].count / 2
    let upper = ContiguousArray(chunks[chunk][half...])
    chunks[chunk].removeSubrange(half...)
    addChunk(upper, at: chunk + 1, start: starts[chunk] + half)
    guard index.isInUse else { return }
    for model in upper { index[ObjectIdentifier(model)] = chunkNames[chunk + 1] }
  }

  private func merge(_ chunk: Int) {
    let upper = chunks[chunk + 1]
    chunks[chunk].append(contentsOf: upper)
    dropChunk(chunk + 1)
    guard index.isInUse else { return }
    for model in upper { index[ObjectIdentifier(model)] = chunkNames[chunk] }
  }

  private func rebuildIndex() {
    index.start()
    for (chunk, name) in zip(chunks, chunkNames) {
      for model in chunk { index[ObjectIdentifier(model)] = name }
    }
  }

  /// Traps if the tables contradict each other; for tests.
  func checkInvariants() {
    var position = 0
    precondition(chunks.count == starts.count && chunks.count == chunkNames.count)
    precondition(Set(chunkNames).count == chunkNames.count, "Two chunks share a name.")
    for (at, chunk) in chunks.enumerated() {
      precondition(!chunk.isEmpty && chunk.count <= Self.chunkCapacity, "A chunk has a wrong size.")
      precondition(starts[at] == position, "A chunk's start is wrong.")
      position += chunk.count
      if index.isInUse {
        for model in chunk {
          precondition(index[ObjectIdentifier(model)] == chunkNames[at], "The index is wrong.")
        }
      }
    }
    precondition(position == count && (!index.isInUse || index.count == count))
  }
}

/// Maps each model to its chunk. The hash table consists of parts of about a thousand entries, so
/// that a shared table is copied one part at a time.
struct ChunkIndex {
  private var parts: ContiguousArray<[ObjectIdentifier: Int32]> = []
  private(set) var count = 0

  private static let partCapacity = 1024

  var isInUse: Bool { !parts.isEmpty }

  mutating func start() { parts = [[:]] }

  subscript(model: ObjectIdentifier) -> Int32? {
    get { parts[part(of: model)][model] }
    set {
      let part = part(of: model)
      if let newValue {
        if parts[part].updateValue(newValue, forKey: model) == nil {
          count += 1
          if count > parts.count * Self.partCapacity { grow() }
        }
      } else if parts[part].removeValue(forKey: model) != nil {
        count -= 1
      }
    }
  }

  /// Objects lie at multiples of 16; the multiplication spreads the remaining bits of the address.
  private func part(of model: ObjectIdentifier) -> Int {
    let mixed = (UInt(bitPattern: model.hashValueOfAddress) >> 4) &* 0x9E37_79B9_7F4A_7C15
    return Int(truncatingIfNeeded: mixed >> 32) & (parts.count - 1)
  }

  private mutating func grow() {
    let old = parts
    parts = ContiguousArray(repeating: [:], count: old.count * 2)
    for entries in old {
      for (model, chunk) in entries { parts[part(of: model)][model] = chunk }
    }
  }
}

extension ObjectIdentifier {
  fileprivate var hashValueOfAddress: Int { Int(bitPattern: self) }
}
