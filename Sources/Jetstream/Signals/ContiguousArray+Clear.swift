extension ContiguousArray {
  /// Empties a queue that will be filled again soon; the memory of an exceptionally long one is released.
  mutating func clear() {
    if capacity > 4096 {
      self = []
    } else if count == 1 {
      removeLast()
    } else {
      removeAll(keepingCapacity: true)
    }
  }
}
