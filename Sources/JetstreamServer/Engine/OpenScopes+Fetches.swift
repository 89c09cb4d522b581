import Jetstream

/// Fetches of scopes that are opened on demand.
extension OpenScopes {
  /// A fetch that is answered once its scope is open.
  struct Waiter {
    let session: ServerSession
    /// The fetch, without what only an opening needs: a peer chooses how large that is.
    let fetch: ScopeFetch
    /// True if the fetch has brought a schema.
    let bringsSchema: Bool
    let deadline: Duration

    init(_ fetch: ScopeFetch, by session: ServerSession, until deadline: Duration) {
      (self.session, self.deadline) = (session, deadline)
      bringsSchema = fetch.schema != nil
      var fetch = fetch
      (fetch.params, fetch.schema) = (.null, nil)
      self.fetch = fetch
    }
  }

  /// The answers to a fetch.
  enum Answer {
    case open(any Hostable)
    /// It is answered later.
    case waits
    /// As many scopes are open as may be, and all of them are in use.
    case full
  }
}
