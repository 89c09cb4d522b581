import Jetstream

/// What the engine does while the process has too much memory.
///
/// It refuses what takes more: new sessions, the opening of scopes, and change sets that add models. Sessions go on, are
/// told everything, resume on new connections, change and remove models. Idle scopes are closed.
extension ServerEngine {
  /// True while the process has more memory than ``Server/Configuration/Limits-swift.struct/residentBytes``.
  var isShortOfMemory: Bool { work.memory.isHigh }

  /// Takes note of the memory that the process has, in bytes. Returns true while that is too much.
  package func noteMemory(_ bytes: Int) -> Bool {
    guard let most = configuration.limits.residentBytes else { return false }
    if work.memory.note(bytes, of: most) {
      let text = "the process has \(bytes >> 20) MiB of memory, of \(most >> 20)"
      hooks.report(
        isShortOfMemory
          ? Diagnostic(
            .error, .session, "\(text): new sessions, openings of scopes and additions are refused")
          : Diagnostic(.info, .session, "\(text): nothing is refused for it any more"))
    }
    return isShortOfMemory
  }
}
