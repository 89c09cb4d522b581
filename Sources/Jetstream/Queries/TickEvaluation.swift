/// Something that is brought up to date in a tick, before observers are called, and then tells its
/// own observers.
protocol TickEvaluation: AnyObject {
  /// Brings it up to date. No observer has been called in the tick yet.
  func evaluate()
  /// Tells its observers.
  func deliver()
}
