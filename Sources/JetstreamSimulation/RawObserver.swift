import Foundation

/// A peer that speaks version 1 of the protocol by hand, has a perfect connection and only listens: it receives
/// the server's messages in the order in which the server sends them.
final class RawObserver {
  /// The number of its connection at the server; no client has it.
  static let connection = 0

  private(set) var stream = StreamReference() { didSet { reached = nil } }
  /// The models that the root reaches; nil after the server has sent more.
  private var reached: Set<String>?
  private let send: ([UInt8]) -> Void
  private(set) var problems: [String] = []
  private var highest = 0
  private var acknowledged = 0

  private let kinds: (String) -> [String: PropertyKind]

  /// - Parameters:
  ///   - kinds: returns the kinds of the properties of a class.
  ///   - send: gives a frame to the server at once.
  init(
    kinds: @escaping (String) -> [String: PropertyKind], send: @escaping ([UInt8]) -> Void
  ) { (self.kinds, self.send) = (kinds, send) }

  /// Begins a session with a server that has started.
  func join() {
    (highest, acknowledged) = (0, 0)
    say(#"{"type":"SessionCreate","index":0,"version":"0.1.0","params":{}}"#)
  }

  /// Fetches a scope in the session.
  func fetch(_ name: String) {
    say(#"{"type":"ScopeFetch","index":1,"name":"\#(name)","params":{}}"#)
  }

  /// Returns the models that the root reaches in what the server has sent.
  func reachable(_ kinds: (String) -> [String: PropertyKind]) -> Set<String> {
    if let reached { return reached }
    let found = stream.reachable(kinds)
    reached = found
    return found
  }

  private func say(_ text: String) { send(Array(text.utf8)) }

  /// The fragments of a full state that is not complete yet.
  private var stateParts: [PlainJSON] = []

  func received(_ frame: [UInt8]) {
    guard let messages = PlainJSON(frame)?.messages, !messages.isEmpty else {
      return problems.append("The server sent the observer something that is no array of messages")
    }
    for message in messages {
      let index = message["index"]?.whole ?? -1
      if index != 0 {
        if index != highest + 1 {
          problems.append("The server sent the observer message \(index) after \(highest)")
        }
        highest = index
      }
      switch message["type"]?.text {
      case "ScopeState":
        stateParts += message["fragments"]?.elements ?? []
        if message["more"] != nil { break }
        stream.begin(root: message["rootUUID"]?.text ?? "", stateParts)
        stateParts = []
      case "ScopeSync": stream.apply(message["fragments"]?.elements ?? [], kinds)
      case "SessionCreateReply" where message["sessionToken"] == nil,
        "ScopeFetchReply" where message["scopeIndex"] == nil:
        problems.append("The server refuses the observer: \(message)")
      case "SessionCreateReply", "ScopeFetchReply", "Ping": break
      default: problems.append("The server sent the observer \(message)")
      }
    }
  }

  /// Acknowledges what was received. Must not be called while the server handles an input.
  func acknowledge() {
    guard highest > acknowledged else { return }
    acknowledged = highest
    say(#"{"type":"Ping","index":0,"ack":\#(highest),"resendMissing":false}"#)
  }

  /// Sends a ping, which keeps the session from expiring.
  func ping() {
    say(#"{"type":"Ping","index":0,"ack":\#(highest),"resendMissing":false}"#)
  }

  func takeProblems() -> [String] {
    defer { problems = [] }
    return stream.problems.isEmpty ? problems : problems + stream.takeProblems()
  }
}
