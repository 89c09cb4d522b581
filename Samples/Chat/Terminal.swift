import Foundation
import Jetstream

/// A line of input for each command, and the room as plain text, drawn again whenever something has changed.
@MainActor
final class Terminal {
  private let client: ChatClient
  /// The messages by the numbers that the user sees.
  private var shown: [Message] = []
  private var notice = "Type a message, or /help."
  private var lastScreen = ""
  private var isDrawing = false
  private let isTerminal = isatty(STDOUT_FILENO) == 1

  static let help = """
    /join ROOM   /rooms   /who   /search TEXT (nothing: all)   /like N   /react N +1
    /edit N TEXT   /delete N   /undo   /retry N   /discard N   /connect   /quit
    Everything else is a message.
    """

  init(_ client: ChatClient) {
    self.client = client
    client.onChange = { [weak self] in self?.drawSoon() }
  }

  /// Reads commands until /quit or the end of the input.
  func run() async {
    draw()
    for await line in Self.lines() {
      if line == "/quit" { return }
      notice = ""
      do { try perform(line) } catch { notice = "\(error)" }
      if isTerminal { lastScreen = "" }  // What was typed is on the screen, too.
      drawSoon()
    }
  }

  /// Writes a line at once, although the output may be a pipe.
  nonisolated static func say(_ line: String) { write(printable(line)) }

  private nonisolated static func write(_ text: String) {
    try? FileHandle.standardOutput.write(contentsOf: Data("\(text)\n".utf8))
  }

  /// Returns a line with a sign in the place of each control character: the texts of other users must not begin lines
  /// of their own, or give commands to the terminal.
  private nonisolated static func printable(_ line: String) -> String {
    let shown = line.unicodeScalars.map { scalar in
      scalar.properties.generalCategory == .control ? "\u{FFFD}" : scalar
    }
    return String(String.UnicodeScalarView(shown))
  }

  // MARK: Commands

  private func perform(_ line: String) throws {
    let words = line.split(separator: " ", maxSplits: 2).map(String.init)
    guard let command = words.first else { return }
    let rest = String(line.dropFirst(command.count + 1))
    switch command {
    case "/help": notice = Self.help
    case "/rooms": notice = "Rooms: \(list(client.lobby.rooms.union(client.rooms.keys)))"
    case "/who": notice = "Online: \(list(client.lobby.people))"
    case "/join":
      guard isName(rest) else {
        return notice = "A room's name has up to 20 small letters, digits and hyphens."
      }
      try client.join(rest)
    case "/search":
      client.current.search(rest)
      notice = rest.isEmpty ? "" : "Messages with \"\(rest)\"; /search shows all again."
    case "/react":
      guard let by = words.count == 3 ? Int(words[2]) : nil, [1, -1].contains(by) else {
        return notice = "For example: /react 3 +1, or /react 3 -1"
      }
      pick(words[1], from: shown).map { client.react(to: $0, by: by) }
    case "/like": pick(rest, from: shown).map(client.like)
    case "/edit":
      guard words.count == 3 else { return notice = "For example: /edit 3 What I meant" }
      pick(words[1], from: shown).map { client.edit($0, words[2]) }
    case "/delete": pick(rest, from: shown).map(client.delete)
    case "/undo": if !client.current.undo() { notice = "There is nothing that can be undone." }
    case "/retry": pick(rest, from: client.current.refused).map { client.retry($0.conflict) }
    case "/discard": pick(rest, from: client.current.refused).map { client.discard($0.conflict) }
    case "/connect": try client.connect()
    case _ where command.hasPrefix("/"): notice = "There is no \(command); try /help."
    default: client.post(line)
    }
  }

  private func pick<Item>(_ number: String, from items: [Item]) -> Item? {
    if let number = Int(number), items.indices.contains(number - 1) { return items[number - 1] }
    notice = "There is no number \(number)."
    return nil
  }

  private func list(_ names: Set<String>) -> String { names.sorted().joined(separator: ", ") }

  // MARK: Screen

  /// Draws once for all that happens in this turn of the main actor.
  private func drawSoon() {
    guard !isDrawing else { return }
    isDrawing = true
    Task {
      isDrawing = false
      draw()
    }
  }

  private func draw() {
    let screen = screen()
    guard screen != lastScreen else { return }
    lastScreen = screen
    // A terminal shows the screen alone; a pipe gets one after the other.
    Self.write(isTerminal ? "\u{1B}[2J\u{1B}[3J\u{1B}[H\(screen)" : "\(screen)\n")
    client.markAsRead()
  }

  private func screen() -> String {
    let room = client.current!
    var lines = [status, String(repeating: "-", count: 60)]
    if let found = room.found {
      shown = found.rows.reversed()
    } else {
      shown = room.newest.rows.reversed() + room.unsent.rows.filter(client.isPending)
    }
    lines += shown.enumerated().map { line($1, number: $0 + 1) }
    for (index, refused) in room.refused.enumerated() {
      lines.append("!\(index + 1) REFUSED \(text(of: refused.conflict)): \(refused.reason)")
    }
    if !room.refused.isEmpty { lines.append("(/retry N sends it again, /discard N forgets it.)") }
    if let refusal = client.refusal {
      lines += ["", "REFUSED: \(refusal)", "(What you write stays pending. /connect tries again.)"]
    }
    if !notice.isEmpty { lines += [""] + notice.split(separator: "\n").map(String.init) }
    return lines.map(Self.printable).joined(separator: "\n")
  }

  private var status: String {
    var parts = ["\(client.user) in #\(client.current.name)", client.connection]
    if client.pendingCount > 0 { parts.append("\(client.pendingCount) pending") }
    let unread = client.rooms.values.filter { $0 !== client.current && $0.unread.value > 0 }
      .sorted { $0.name < $1.name }.map { "#\($0.name) \($0.unread.value)" }
    if !unread.isEmpty { parts.append("unread: \(unread.joined(separator: ", "))") }
    return parts.joined(separator: " | ")
  }

  private func line(_ message: Message, number: Int) -> String {
    var parts = [
      client.isPending(message) ? "…" : " ", message.date.map(Self.time) ?? "--:--",
      "\(message.author): \(message.text.text)",
    ]
    if message.score != 0 {
      parts.append(message.score > 0 ? "+\(message.score)" : "\(message.score)")
    }
    if !message.likes.isEmpty { parts.append("[liked by \(list(message.likes))]") }
    return "\(number) " + parts.joined(separator: " ")
  }

  /// Describes what the user has tried. A message that was refused is in no room any more: the conflict has its values.
  private func text(of conflict: Conflict) -> String {
    switch conflict.mine {
    case .addition(let values): return quoted(values["text"])
    case .value(let text) where conflict.property == "text": return "edit \(quoted(text))"
    case .operations(let operations) where conflict.property == "messages":
      guard case .remove(let uuid)? = operations.first,
        let message = client.current.scope.model(uuid) as? Message
      else { break }
      return "deletion of \(quoted(.string(message.text.text)))"
    default: break
    }
    return "change of \(conflict.property ?? "a message")"
  }

  private func quoted(_ value: JSONValue?) -> String {
    guard case .string(let text)? = value else { return "a message" }
    return text.count > 40 ? "\"\(text.prefix(40))…\"" : "\"\(text)\""
  }

  private static func time(_ date: Date) -> String {
    let parts = Calendar.current.dateComponents([.hour, .minute], from: date)
    return [parts.hour, parts.minute].map { ($0! < 10 ? "0" : "") + "\($0!)" }.joined(
      separator: ":")
  }

  /// The lines of the input, which a thread waits for.
  static func lines() -> AsyncStream<String> {
    AsyncStream { continuation in
      Thread.detachNewThread {
        while let line = readLine() { continuation.yield(line) }
        continuation.finish()
      }
    }
  }
}
