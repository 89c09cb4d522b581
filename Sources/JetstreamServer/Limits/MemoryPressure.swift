/// The memory pressure of a process, told from looks at its memory.
///
/// The pressure begins with the second look in a row above the limit: what the allocator has kept of freed memory is given
/// back in between. It ends a sixteenth below the limit, so that what is refused does not change with every look.
struct MemoryPressure {
  private(set) var isHigh = false
  private var wasAbove = false

  /// Takes note of the memory that a look has found. Returns true if it is above the limit, or above the end of the pressure.
  mutating func note(_ bytes: Int, of most: Int) -> Bool {
    let isAbove = bytes > (isHigh ? most - most / 16 : most)
    isHigh = isAbove && wasAbove
    wasAbove = isAbove
    return isAbove
  }
}
