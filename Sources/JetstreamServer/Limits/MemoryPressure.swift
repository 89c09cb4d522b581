/// Tells whether the process has more memory than it may have.
///
/// It begins above the limit, and ends a sixteenth below it, so that what is refused does not change with every reading.
struct MemoryPressure {
  private(set) var isHigh = false

  /// Takes note of the memory that the process has. Returns true if the pressure has begun or ended.
  mutating func note(_ bytes: Int, of most: Int) -> Bool {
    let was = isHigh
    isHigh = bytes > (isHigh ? most - most / 16 : most)
    return isHigh != was
  }
}
