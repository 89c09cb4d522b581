import Foundation

/// Messages that the server does not read because they are too large for it.
///
/// The server answers such a message by closing the connection with code 1009. It reads the frames in order, so the
/// largest one of the connection is among those that it refuses. The session would repeat the message on each later
/// connection, with the same end. So the client ends the session, and decides about the content of the message: a
/// change set is rejected, and the syncing of a scope ends, since each request for it would be the same. In the next
/// session the client sends the rest again.
extension ClientEngine {
  /// A frame that was sent.
  struct SentFrame {
    private(set) var bytes = 0
    private(set) var channel = 0
    /// The index of its last message; 0 if that is not repeated.
    private(set) var index = 0

    /// Takes note of a frame, if it is larger than this one.
    mutating func note(_ bytes: Int, _ messages: [Message], in channel: Int) {
      guard bytes > self.bytes else { return }
      (self.bytes, self.channel, index) = (bytes, channel, messages.last?.index ?? 0)
    }
  }

  /// The size up to which a refused message says nothing about others, in bytes.
  private static let leastLimit = 64 << 10

  /// Handles a close of the connection because of a message that is too large.
  func refuseLargest(_ reason: String) {
    let sent = largestFrame
    let text = "the server refuses to read a message of \(sent.bytes) bytes"
    let problem = reason.isEmpty ? text : "\(text): \(reason)"
    if connection.isCreating { return deny(.sessionDenied(reason: problem)) }
    let requested = session.replica(requestedBy: sent.index, in: sent.channel)
    for replica in replicas(in: sent.channel) where replica.hasSent(sent.index) {
      replica.noteRefused(sent.index, bytes: sent.bytes)
      // A shorter one may have been refused for another reason, and would keep the client from sending anything.
      if sent.bytes > Self.leastLimit { refusedBytes = min(refusedBytes, sent.bytes) }
    }
    loseSession()
    retry(reason: problem)
    // A listener of the status may have ended the syncing.
    guard let requested, replicas.contains(where: { $0 === requested }) else { return }
    lose(requested, .messageTooLarge(problem))
  }
}

extension WireError {
  /// The error of a message that is larger than what the server reads.
  static func messageTooLarge(_ text: String) -> WireError {
    WireError(message: text, type: "message-too-large")
  }
}
