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
    for (session, name) in runner.engine.knownAccess(of: principal) {
      runner.changeAccess(session.token, name, await currentAnswer(session, name))
    }
    for shard in shards.all {
      await shard.catchUp()
      for (session, name) in await shard.knownAccess(of: principal) {
        await shard.changeAccess(session.token, name, currentAnswer(session, name))
      }
    }
  }

  /// Asks the app for the rights of a session in a scope by the question of a number, if it wants to be asked.
  func beginAccess(
    of session: SessionInfo, to name: String, as number: Int
  ) -> ServerEngine.AccessAnswer {
    guard let access else { return .unguarded }
    let question = AppQuestion {
      try await access(session, name)
    } ended: { [weak self] answer in
      guard let self, runner.questions.take(number) else { return }
      runner.decided(session.token, name, number, rights(answer, of: session, in: name))
    }
    // The engine asks anew then.
    let deadline = runner.ticker.now + openingTime * 3
    runner.questions.keep(question, as: number, of: session.token, until: deadline)
    question.begin(on: actor)
    return .pending
  }

  /// The time for which a fetch waits, and a change of rights.
  private var openingTime: Duration { runner.engine.configuration.openScopes.openingTime }

  /// Returns the app's answer. Asks again if rights have changed meanwhile: another call of ``updateAccess(of:)`` may have
  /// had a newer answer.
  private func currentAnswer(
    _ session: SessionInfo, _ name: String
  ) async -> Result<ScopeAccess, WireError> {
    var answer: Result<ScopeAccess, WireError>
    var attempts = 0
    repeat {
      let changes = runner.engine.accessChanges(of: session.token)
      answer = await self.answer(session, name)
      attempts += 1
      if changes == runner.engine.accessChanges(of: session.token) { break }
      // An app that changes rights faster than it tells them must not have this wait for ever.
    } while attempts < 10
    return answer
  }

  /// Returns the app's answer, for which it has as much time as for a fetch.
  private func answer(
    _ session: SessionInfo, _ name: String
  ) async -> Result<ScopeAccess, WireError> {
    guard let access else { return .success(.readWrite) }
    let question = AppQuestion { try await access(session, name) }
    runner.questions.keep(question)
    question.begin(on: actor)
    runner.ticker.perform(after: openingTime) { [weak question] in question?.giveUp() }
    await question.wait()
    runner.questions.changeEnded(question)
    return rights(Result { try question.get() }, of: session, in: name)
  }

  /// Returns the rights that the app has named, or the error with which the session is refused.
  private func rights(
    _ answer: Result<ScopeAccess, any Error>, of session: SessionInfo, in name: String
  ) -> Result<ScopeAccess, WireError> {
    answer.mapError { error in
      if let error = error as? WireError { return error }
      let text = "the rights of a session could not be found out: \(error)"
      onDiagnostic.fire(Diagnostic(.error, .scope, session: session.number, scope: name, text))
      return .notNow("The server cannot tell what you may do", retryAfter: .seconds(1))
    }
  }
}
