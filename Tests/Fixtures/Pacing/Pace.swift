/// Who may compute now; one for the whole process, whatever targets there are in it.
///
/// One test computes at a time as long as others talk over real sockets, and two when these are done. Of the tests in
/// one lane, which share something, only one does.
public actor Pace {
  /// The only one.
  public static let shared = Pace()
  private var computing = 0
  private var busyLanes: Set<String> = []
  /// How many suites talk over sockets, or with processes that do.
  private var live = 0
  private var waiting: [(lane: String?, continuation: CheckedContinuation<Void, Never>)] = []

  private func hasRoom(in lane: String?) -> Bool {
    computing < (live > 0 ? 1 : 2) && !(lane.map(busyLanes.contains) ?? false)
  }

  private func begin(in lane: String?) {
    computing += 1
    if let lane { busyLanes.insert(lane) }
  }

  /// Waits until there is room to compute.
  public func enter(_ lane: String?) async {
    if hasRoom(in: lane) {
      begin(in: lane)
    } else {
      await withCheckedContinuation { waiting.append((lane, $0)) }
    }
  }

  /// Lets the next one.
  public func leave(_ lane: String?) {
    computing -= 1
    if let lane { busyLanes.remove(lane) }
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
    while let at = waiting.firstIndex(where: { hasRoom(in: $0.lane) }) {
      let (lane, continuation) = waiting.remove(at: at)
      begin(in: lane)
      continuation.resume()
    }
  }
}
