import Foundation

/// A peer that speaks version 1 of the protocol by hand, is perfectly connected and only listens: it
/// hears what the server says in the order in which the server says it.
final class RawObserver {
  /// The number of its connection with the server; no client has it.
  static let connection = 0

  private(set) var stream = StreamReference() { didSet { reached = nil } }
  /// The models that the root reaches, as long as the server says nothing more.
  private var reached: Set<String>?
  private let send: ([UInt8]) -> Void
  private(set) var problems: [String] = []
  private var highest = 0
  private var acknowledged = 0

  /// - Parameter send: gives a frame to the server at once.
  init(send: @escaping ([UInt8]) -> Void) { self.send = send }

  /// The server has started: begins a session.
  func join() {
    (highest, acknowledged) = (0, 0)
    say(#"{"type":"SessionCreate","index":0,"version":"0.1.0","params":{}}"#)
  }

  /// Asks for a scope, once the session is there.
  func fetch(_ name: String) {
    say(#"{"type":"ScopeFetch","index":1,"name":"\#(name)","params":{}}"#)
  }

  /// Returns the models that the root reaches in what the server has said.
  func reachable(_ kinds: (String) -> [String: PropertyKind]) -> Set<String> {
    if let reached { return reached }
    let found = stream.reachable(kinds)
    reached = found
    return found
  }

  private func say(_ text: String) { send(Array(text.utf8)) }

  /// The models of a state that is not complete.
  private var stateParts: [PlainJSON] = []

  func received(_ frame: [UInt8]) {
    guard let messages = PlainJSON(frame)?.elements, !messages.isEmpty else {
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
      case "ScopeSync": stream.apply(message["fragments"]?.elements ?? [])
      case "SessionCreateReply" where message["sessionToken"] == nil,
        "ScopeFetchReply" where message["scopeIndex"] == nil:
        problems.append("The server refuses the observer: \(message)")
      case "SessionCreateReply", "ScopeFetchReply", "Ping": break
      default: problems.append("The server sent the observer \(message)")
      }
    }
  }

  /// Tells the server what was heard. Not while the server is at work.
  func acknowledge() {
    guard highest > acknowledged else { return }
    acknowledged = highest
    say(#"{"type":"Ping","index":0,"ack":\#(highest),"resendMissing":false}"#)
  }

  /// Shows that it is still there.
  func ping() {
    say(#"{"type":"Ping","index":0,"ack":\#(highest),"resendMissing":false}"#)
  }

  func takeProblems() -> [String] {
    defer { problems = [] }
    return stream.problems.isEmpty ? problems : problems + stream.takeProblems()
  }
}
