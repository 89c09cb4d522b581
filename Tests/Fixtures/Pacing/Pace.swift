/// Who may compute now; one for the whole process, whatever targets there are in it.
public actor Pace {
  /// The only one.
  public static let shared = Pace()
  private var isTaken = false
  private var waiting: [CheckedContinuation<Void, Never>] = []
  private var next = 0

  /// Waits until nobody else computes.
  public func enter() async {
    if isTaken {
      await withCheckedContinuation { waiting.append($0) }
    } else {
      isTaken = true
    }
  }

  /// Lets the next one.
  public func leave() {
    if next < waiting.count {
      next += 1
      waiting[next - 1].resume()
    } else {
      isTaken = false
    }
  }
}
