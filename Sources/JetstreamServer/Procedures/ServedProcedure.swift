import Jetstream

/// A procedure that a server runs for clients.
package struct ServedProcedure {
  /// True if clients send arguments, and their changes are a guess.
  let takesArguments: Bool
  /// The constraints that the clients' changes have to meet; none for any changes.
  var constraints: [Constraint] = []
  /// Runs the procedure for a request: at once, or later.
  let run: (ProcedureRequest) -> Void

  /// Makes a procedure.
  package init(
    takesArguments: Bool, constraints: [Constraint] = [], run: @escaping (ProcedureRequest) -> Void
  ) {
    self.takesArguments = takesArguments
    self.constraints = constraints
    self.run = run
  }

  /// Returns the reason for which a call cannot be a call of the procedure; nil if it can.
  ///
  /// - Parameter changes: returns what the client has changed. It is called if there are constraints.
  func objection(to arguments: JSONValue?, _ changes: () -> ChangeSet) -> String? {
    if takesArguments != (arguments != nil) {
      return takesArguments ? "the procedure needs arguments" : "the procedure has no arguments"
    }
    guard !constraints.isEmpty,
      let first = changes().fragments(notMeeting: constraints).first
    else { return nil }
    return "the procedure does not allow \(first.kind) of \(first.className) "
      + "'\(first.uuid.wireText)'"
  }
}
