/// Who may compute now; one for the whole process, whatever targets there are in it.
///
/// One test computes at a time as long as others talk over real sockets, and two when these are done.
public actor Pace {
  /// The only one.
  public static let shared = Pace()
  private var computing = 0
  /// How many suites talk over sockets, or with processes that do.
  private var live = 0
  private var waiting: [CheckedContinuation<Void, Never>] = []
  private var next = 0

  private var hasRoom: Bool { computing < (live > 0 ? 1 : 2) }

  /// Waits until there is room to compute.
  public func enter() async {
    if hasRoom {
      computing += 1
    } else {
      await withCheckedContinuation { waiting.append($0) }
    }
  }

  /// Lets the next one.
  public func leave() {
    computing -= 1
    admit()
  }

  /// From now on a suite talks over sockets.
  public func beginLive() { live += 1 }

  /// A suite does so no longer.
  public func endLive() {
    live -= 1
    admit()
  }

  private func admit() {
    while hasRoom, next < waiting.count {
      computing += 1
      next += 1
      waiting[next - 1].resume()
    }
  }
}
