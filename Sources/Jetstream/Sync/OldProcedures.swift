/// The change sets that a replica has sent to procedures of a server of version 1, and the changes that the
/// procedures make.
///
/// Such a server applies the change set, then the changes of its procedure. It sends these to all clients, including
/// the caller, and replies last. So the caller receives changes that come after its change set in the server's order
/// before the reply, and they look like remote changes that come before it. To tell these apart, the client sends an
/// empty change set in front of one with a procedure: the *marker*. Both go in one frame, so that nothing gets
/// between them in the server's queue for the scope, and the server holds the queue until it has replied. So all
/// changes that arrive between the replies to the marker and to the change set were made by the procedure.
///
/// If the server cannot read the change set, it drops the whole frame. So once a marker has been answered, its
/// change set will be answered, too.
struct OldProcedures {
  /// The index of each marker, with the index of the message that carries its change set.
  private var markers: [Int: Int] = [:]
  /// The index of the message whose procedure is running.
  private var running: Int?
  /// The changes that the procedure has made so far.
  private var changes: [Replica.Incoming] = []

  /// Remembers that a marker and a change set were sent.
  mutating func note(marker: Int, of messageIndex: Int) { markers[marker] = messageIndex }

  /// Returns true if the message is a marker that the server has not answered.
  func isMarker(_ messageIndex: Int) -> Bool { markers[messageIndex] != nil }

  /// Starts holding back changes, because the server has answered a marker and runs the procedure behind it.
  ///
  /// - Returns: false, having done nothing, if the message is not a marker.
  mutating func begin(at messageIndex: Int) -> Bool {
    guard !markers.isEmpty, let set = markers.removeValue(forKey: messageIndex) else {
      return false
    }
    running = set
    return true
  }

  /// Holds back a change that a procedure has made.
  ///
  /// - Returns: false, having done nothing, if no procedure is running.
  mutating func hold(_ message: Replica.Incoming) -> Bool {
    guard running != nil else { return false }
    changes.append(message)
    return true
  }

  /// Returns the changes that a procedure has made, once the server has answered its change set or a later one.
  mutating func end(at messageIndex: Int) -> [Replica.Incoming] {
    guard let running, running <= messageIndex else { return [] }
    defer { changes = [] }
    self.running = nil
    return changes
  }
}
