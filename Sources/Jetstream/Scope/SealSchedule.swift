/// Decides when the collected changes of a scope become a change set.
///
/// The first change of an interval asks the ticker for a seal at its end. A seal that is due while a call of `modify` runs,
/// or while changes of other replicas are being applied, is missed. It is made up for when both have ended.
struct SealSchedule {
  /// True from the first change of an interval until the seal that ends it.
  private(set) var isRequested = false
  /// True if a seal was due when it was not possible.
  private(set) var isMissed = false
  /// The depth of nested calls that apply fragments.
  private var depth = 0
  /// Finished calls of `modify` whose change set waits until all changes of another replica are applied.
  var deferred: Modification?
  private var seat: TickSeat?

  /// True if no fragments are being applied, and no seal was asked for, was missed or waits.
  var isIdle: Bool { depth == 0 && !isRequested && !isMissed && deferred == nil }

  /// True while fragments are being applied.
  var isApplying: Bool { depth > 0 }

  /// Returns the entry of `scope` in the schedule of its ticker.
  mutating func seat(of scope: Scope) -> TickSeat {
    if let seat { return seat }
    let made = TickSeat(scope)
    seat = made
    return made
  }

  /// Asks for a seal. Returns false if one was asked for already.
  @inline(__always)
  mutating func request() -> Bool {
    if isRequested { return false }
    isRequested = true
    return true
  }

  /// Notes that a seal was due and not possible.
  mutating func miss() { isMissed = true }

  /// Ends the interval: what is collected from here on asks for another seal.
  mutating func endInterval() { (isRequested, isMissed) = (false, false) }

  mutating func beginApplying() { depth += 1 }

  /// Ends one of the nested calls that apply fragments. Returns true for the outermost one.
  mutating func endApplying() -> Bool {
    depth -= 1
    return depth == 0
  }
}
