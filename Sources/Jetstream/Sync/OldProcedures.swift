/// The sets that a replica has sent to procedures of a server of version 1, and what the procedures change.
///
/// Such a server applies the set, then what the procedure changes, tells all clients of that, the caller too, and
/// replies in the end. The caller therefore sees changes that are later than its set before the reply, which is where
/// the set counts otherwise; and they come as what others have changed before the set does. To tell these apart, the
/// client sends an empty set in front of that of a procedure: the *marker*. Both go in one frame, so that nothing gets
/// in between in the server's queue for the scope. The server holds the queue until it has replied. So everything that
/// comes between the replies to the marker and to the set was changed by the procedure.
///
/// If the server cannot read the set, it drops the whole frame. So a marker that is answered has a set that will be.
struct OldProcedures {
  /// The index of each marker, with that of the message that carries its set.
  private var markers: [Int: Int] = [:]
  /// The message with the set whose procedure runs.
  private var running: Int?
  /// What the procedure has changed.
  private var changes: [Replica.Incoming] = []

  /// A marker and a set were sent.
  mutating func note(marker: Int, of messageIndex: Int) { markers[marker] = messageIndex }

  /// Whether a message was a marker that is not answered.
  func isMarker(_ messageIndex: Int) -> Bool { markers[messageIndex] != nil }

  /// Begins with the procedure behind a marker, which the server has answered.
  ///
  /// - Returns: false, having done nothing, if the message was no marker.
  mutating func begin(at messageIndex: Int) -> Bool {
    guard !markers.isEmpty, let set = markers.removeValue(forKey: messageIndex) else {
      return false
    }
    running = set
    return true
  }

  /// Keeps a change back that a procedure has made.
  ///
  /// - Returns: false, having done nothing, if no procedure runs.
  mutating func hold(_ message: Replica.Incoming) -> Bool {
    guard running != nil else { return false }
    changes.append(message)
    return true
  }

  /// The server has answered a set: gives what a procedure has changed behind it, or behind one before it.
  mutating func end(at messageIndex: Int) -> [Replica.Incoming] {
    guard let running, running <= messageIndex else { return [] }
    defer { changes = [] }
    self.running = nil
    return changes
  }
}
