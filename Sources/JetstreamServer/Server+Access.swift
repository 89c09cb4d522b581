import Foundation
import Jetstream

/// The rights of clients in scopes.
extension Server {
  /// Asks the app anew for the rights of a principal's sessions in the scopes that they have, after they may have changed:
  /// it was made a moderator, or was put out of a room. When this returns, the new rights are in force in both directions.
  ///
  /// ```swift
  /// members.remove("u-4711", from: "room/1")
  /// await server.updateAccess(of: "u-4711")
  /// ```
  ///
  /// A scope for which ``access`` throws is taken from the session: the client is sent the error, and decides by its
  /// `WireError.denial`. So is one for which ``access`` has not answered after ``Configuration/scopeOpeningTime``; its client
  /// asks again. Clients of version 1, which know no such message, lose their session. Does nothing if ``access`` is not set.
  ///
  /// - Parameter principal: the ``Principal/id``; nil for all sessions.
  public func updateAccess(of principal: String? = nil) async {
    guard access != nil else { return }
    runner.engine.outdateAccess(of: principal)
    for asked in runner.engine.knownAccess(of: principal).compactMap(ask) {
      let answer = await currentAnswer(to: asked)
      runner.changeAccess(asked.session.token, asked.name, answer)
    }
    for shard in shards.all {
      await shard.catchUp()
      for asked in await shard.knownAccess(of: principal).compactMap(ask) {
        await shard.changeAccess(asked.session.token, asked.name, currentAnswer(to: asked))
      }
    }
  }

  /// A question for rights that may have changed.
  private struct Asked {
    let session: SessionInfo
    let name: String
    /// The number of times that the session's rights had changed when the app was asked.
    let changes: Int
    let question: AppQuestion<ScopeAccess>
  }

  /// Asks the app, which has as much time for its answer as for a fetch. Returns nil for a server that stops.
  private func ask(_ session: SessionInfo, _ name: String) -> Asked? {
    guard let access, runner.isRunning else { return nil }
    let question = AppQuestion { try await access(session, name) }
    runner.questions.keep(question, until: runner.ticker.now + openingTime)
    question.begin(on: actor)
    let changes = runner.engine.accessChanges(of: session.token)
    return Asked(session: session, name: name, changes: changes, question: question)
  }

  /// Asks the app for the rights of a session in a scope by the question of a number, if it wants to be asked.
  func beginAccess(
    of session: SessionInfo, to name: String, as number: Int
  ) -> ServerEngine.AccessAnswer {
    guard let access else { return .unguarded }
    let question = AppQuestion {
      try await access(session, name)
    } ended: { [weak self] answer in
      guard let self, runner.questions.takeRights(number) else { return }
      runner.decided(session.token, name, number, rights(answer, of: session, in: name))
    }
    runner.questions.keep(question, as: number, of: session.token)
    question.begin(on: actor)
    return .pending
  }

  /// The time for which a fetch waits, and a change of rights.
  private var openingTime: Duration { runner.engine.configuration.openScopes.openingTime }

  /// Returns the app's answer. Asks again if rights have changed meanwhile: another call of ``updateAccess(of:)`` may have
  /// had a newer answer.
  private func currentAnswer(to first: Asked) async -> Result<ScopeAccess, WireError> {
    var asked = first
    var attempts = 1
    while true {
      await asked.question.wait()
      runner.questions.changeEnded(asked.question)
      // An app that changes rights faster than it tells them must not have this wait for ever.
      guard attempts < 10, runner.engine.accessChanges(of: asked.session.token) != asked.changes,
        let next = ask(asked.session, asked.name)
      else { break }
      asked = next
      attempts += 1
    }
    let question = asked.question
    return rights(Result { try question.get() }, of: asked.session, in: asked.name)
  }

  /// Returns the rights that the app has named, or the error with which the session is refused.
  private func rights(
    _ answer: Result<ScopeAccess, any Error>, of session: SessionInfo, in name: String
  ) -> Result<ScopeAccess, WireError> {
    answer.mapError { error in
      if let error = error as? WireError { return error }
      let reason = error is CancellationError ? "the app has not answered" : "\(error)"
      let text = "the rights of a session could not be found out: \(reason)"
      onDiagnostic.fire(Diagnostic(.error, .scope, session: session.number, scope: name, text))
      return .notNow("The server cannot tell what you may do", retryAfter: .seconds(1))
    }
  }
}
