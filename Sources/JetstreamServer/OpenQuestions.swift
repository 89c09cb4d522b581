import Jetstream

/// The questions to the app that it has not answered.
///
/// It is a class, since a question that is given up ends at once, and its end is taken here.
final class OpenQuestions {
  /// A question for the rights of a session in a scope.
  private struct Rights {
    let token: String
    let question: AppQuestion<ScopeAccess>
  }

  /// The calls of handlers of procedures, until these have returned, by their requests.
  private var handlers: [ObjectIdentifier: AppQuestion<Void>] = [:]
  /// The questions about the clients of connections.
  private var clients: [Int: AppQuestion<Principal?>] = [:]
  /// The questions for rights, by their numbers.
  private var rights: [Int: Rights] = [:]
  /// A question for rights that may have changed.
  private struct Change {
    let question: AppQuestion<ScopeAccess>
    /// The time at which it is given up.
    let deadline: Duration
  }

  /// The questions for rights that may have changed.
  private var changes: [ObjectIdentifier: Change] = [:]

  // MARK: Handlers

  /// Keeps the call of a handler for a request.
  func keep(_ handler: AppQuestion<Void>, for request: ProcedureRequest) {
    handlers[ObjectIdentifier(request)] = handler
  }

  /// Removes the call of a handler that has ended.
  func handlerEnded(for request: ProcedureRequest) { handlers[ObjectIdentifier(request)] = nil }

  // MARK: Clients

  func keep(_ question: AppQuestion<Principal?>, about connection: Int) {
    clients[connection] = question
  }

  /// Removes the question about the client of a connection. Returns false if it is not waited for any more.
  func takeClient(of connection: Int) -> Bool {
    clients.removeValue(forKey: connection) != nil
  }

  /// Gives up the question about the client of a connection.
  func giveUp(about connection: Int) {
    clients.removeValue(forKey: connection)?.giveUp()
  }

  // MARK: Rights

  func keep(_ question: AppQuestion<ScopeAccess>, as number: Int, of token: String) {
    rights[number] = Rights(token: token, question: question)
  }

  /// Removes the question for rights of a number. Returns false if it is not waited for any more.
  func takeRights(_ number: Int) -> Bool { rights.removeValue(forKey: number) != nil }

  func keep(_ change: AppQuestion<ScopeAccess>, until deadline: Duration) {
    changes[ObjectIdentifier(change)] = Change(question: change, deadline: deadline)
  }

  func changeEnded(_ change: AppQuestion<ScopeAccess>) {
    changes[ObjectIdentifier(change)] = nil
  }

  /// Gives up the questions for changed rights that should have been answered by now. Their callers remove them.
  func giveUpLate(at now: Duration) {
    for change in changes.values where change.deadline <= now { change.question.giveUp() }
  }

  /// Gives up the questions for the rights of a session that has ended.
  func giveUp(of token: String) { giveUp { $1 == token } }

  /// Gives up the questions for rights of whose numbers and sessions `isOver` returns true.
  func giveUp(where isOver: (_ number: Int, _ token: String) -> Bool) {
    for (number, asked) in rights where isOver(number, asked.token) {
      rights[number] = nil
      asked.question.giveUp()
    }
  }

  // MARK: The end

  /// Gives up all questions but the calls of handlers, whose requests end with the engine.
  func giveUp() {
    let (clients, rights, changes) = (self.clients, self.rights, self.changes)
    (self.clients, self.rights, self.changes) = ([:], [:], [:])
    for question in clients.values { question.giveUp() }
    for asked in rights.values { asked.question.giveUp() }
    for change in changes.values { change.question.giveUp() }
  }
}
