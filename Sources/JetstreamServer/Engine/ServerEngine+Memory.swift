import Jetstream

/// The engine's behaviour while the process is short of memory.
///
/// It refuses what takes more: new sessions, the opening of scopes, and change sets that add models or make values longer.
/// Sessions go on, are told everything, resume on new connections, make other changes and remove models. Idle scopes are
/// closed sooner.
extension ServerEngine {
  /// True while what takes more memory is refused; see ``ServerLimits/residentBytes``.
  var isShortOfMemory: Bool { work.memory.isHigh }

  /// Takes note of the memory that the process has, in bytes. Returns true if freed memory is to be given back to the
  /// system.
  package func noteMemory(_ bytes: Int) -> Bool {
    guard let most = configuration.limits.residentBytes else { return false }
    let was = isShortOfMemory
    let isAbove = work.memory.note(bytes, of: most)
    // One channel tells for all.
    guard configuration.channel.number == 0 else { return false }
    if isShortOfMemory != was {
      let text = "the process has \(bytes >> 20) MiB of memory, of \(most >> 20)"
      hooks.report(
        isShortOfMemory
          ? Diagnostic(
            .error, .session,
            "\(text): new sessions, openings of scopes, additions and longer values are refused")
          : Diagnostic(.info, .session, "\(text): nothing is refused for it any more"))
    }
    return isAbove
  }
}
