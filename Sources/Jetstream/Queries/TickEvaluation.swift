/// An object that is brought up to date in a tick, before observers are called, and then calls its own observers.
protocol TickEvaluation: AnyObject {
  /// Brings the object up to date. No observer has been called in the tick yet.
  func evaluate()
  /// Calls the object's observers.
  func deliver()
}
