import Jetstream

/// A question to the app, which may wait for something before it answers, and may never answer.
///
/// The task in which the app is asked keeps the question and nothing of the server, which may stop meanwhile, or be released.
/// The question has one end: the answer of the app, or being given up. Keep it until then.
final class AppQuestion<Answer> {
  private let body: () async throws -> Answer
  /// Takes the end of the question.
  private let ended: (Result<Answer, any Error>) -> Void
  private var answer: Result<Answer, any Error>?
  private var waiting: CheckedContinuation<Void, Never>?
  private var task: Task<Void, Never>?
  /// The actor on which the question is asked and waited for, and takes its end.
  private var home: WeakActor?

  /// Makes a question.
  ///
  /// - Parameters:
  ///   - body: asks the app.
  ///   - ended: called once, with the answer or, when the question is given up, with a `CancellationError`. It must not keep
  ///     the server.
  init(
    _ body: @escaping () async throws -> Answer,
    ended: @escaping (Result<Answer, any Error>) -> Void = { _ in }
  ) {
    (self.body, self.ended) = (body, ended)
  }

  /// Asks the app, in a task of its own on an actor, on which the caller is.
  ///
  /// - Returns: the task, which may be cancelled: the app decides what comes of that.
  @discardableResult
  func begin(on actor: WeakActor) -> Task<Void, Never> {
    home = actor
    let task = HomeReference(self, on: actor).task { await $0.ask() }
    self.task = task
    return task
  }

  private func ask() async {
    do {
      take(.success(try await body()))
    } catch {
      take(.failure(error))
    }
  }

  /// Cancels the task in which the app is asked, for whose answer the question goes on to wait.
  func cancel() { task?.cancel() }

  /// Ends the question without an answer, and cancels its task. An answer that the app gives later is ignored.
  func giveUp() {
    task?.cancel()
    take(.failure(CancellationError()))
  }

  private func take(_ answer: Result<Answer, any Error>) {
    if self.answer != nil { return }
    self.answer = answer
    waiting?.resume()
    waiting = nil
    ended(answer)
  }

  /// Returns once the question has ended. It is called once.
  func wait() async {
    // An answer that is taken on one thread while another one begins to wait for it would be missed.
    home?.value?.assertIsolated("The app's answer is waited for where its question began.")
    if answer != nil { return }
    await withCheckedContinuation { waiting = $0 }
  }

  /// Returns the answer of the app.
  ///
  /// - Throws: the error of the app; `CancellationError` if there is no answer.
  func get() throws -> Answer {
    guard let answer else { throw CancellationError() }
    return try answer.get()
  }
}
