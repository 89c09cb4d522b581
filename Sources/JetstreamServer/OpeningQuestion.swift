/// The question to the app for a scope that is being opened.
///
/// The task in which the app is asked keeps the question and nothing of the server, which may stop meanwhile.
final class OpeningQuestion {
  private let opening: ScopeOpening
  private let resolve: (ScopeOpening) async throws -> ScopeSource
  private var answer: Result<ScopeSource, any Error>?
  private var waiting: CheckedContinuation<Void, Never>?

  init(
    for opening: ScopeOpening, _ resolve: @escaping (ScopeOpening) async throws -> ScopeSource
  ) {
    (self.opening, self.resolve) = (opening, resolve)
  }

  /// Asks the app.
  func ask() async {
    do {
      take(.success(try await resolve(opening)))
    } catch {
      take(.failure(error))
    }
  }

  /// Ends the question without an answer. One that the app gives later is ignored.
  func giveUp() { take(.failure(CancellationError())) }

  private func take(_ answer: Result<ScopeSource, any Error>) {
    if self.answer != nil { return }
    self.answer = answer
    waiting?.resume()
    waiting = nil
  }

  /// Returns once there is an answer.
  func wait() async {
    if answer != nil { return }
    await withCheckedContinuation { waiting = $0 }
  }

  /// Returns the source that the app has named.
  ///
  /// - Throws: the error of the app; `CancellationError` if there is no answer.
  func source() throws -> ScopeSource {
    guard let answer else { throw CancellationError() }
    return try answer.get()
  }
}
