import Foundation
import Jetstream

/// One process that edits the catalogue: the server itself, or a client.
@MainActor
final class Participant {
  let catalogue: Catalogue
  let scope: Scope
  let name: String
  /// Nil in the server.
  private let client: Client?
  /// Nil if nothing is kept.
  private let log: FragmentLog?
  private let options: EditOptions
  private let cuts: Int
  /// The beginning of each line that it prints.
  private let prefix: String
  private var editing: Task<Void, Never>?
  private var editor: RandomEditor
  private var lostConnections = 0
  private var rejected = 0
  private var isStopped = false

  init(
    scope: Scope, catalogue: Catalogue, client: Client? = nil, log: FragmentLog? = nil,
    options: EditOptions, cuts: Int = 0, prefix: String = ""
  ) {
    self.scope = scope
    self.catalogue = catalogue
    self.client = client
    self.log = log
    self.options = options
    self.cuts = cuts
    self.prefix = prefix
    name = options.name ?? (client == nil ? "server" : "client\(options.seed)")
    editor = RandomEditor(catalogue: catalogue, author: name, seed: options.seed)
    client?.onStatusChange.listen(self) { me, status in
      if status == .waiting { me.lostConnections += 1 }
    }
    scope.conflicts.onAdd.listen(self) { me, conflict in
      if case .rejected = conflict.reason { me.rejected += 1 }
    }
    if options.tells {
      scope.onPendingChangeSet.listen(self) { me, _ in me.say("sealed \(me.editor.count)") }
    }
  }

  // MARK: Editing

  /// Begins to edit, unless that was done before.
  func start() {
    guard editing == nil else { return }
    editing = Task {
      await edit()
      say("edited \(editor.count)")
    }
  }

  private func edit() async {
    var cutsMade = 0
    while editor.count < options.edits, !isStopped {
      let isCut = cutsMade < cuts && editor.count * (cuts + 1) >= options.edits * (cutsMade + 1)
      if isCut { await waitUntilOnline() }
      for _ in 0..<min(editor.batch(), options.edits - editor.count) {
        editor.edit()
        if options.tells { say("shown \(editor.count) \(Date().timeIntervalSince1970)") }
      }
      if isCut {
        // The last change set is on its way, or not even that.
        scope.flush()
        client?.cutConnection()  // Only within this package.
        cutsMade += 1
      } else if editor.wantsFlush() {
        scope.flush()
        await Task.yield()
      } else {
        await waitForChangeSet()
      }
      if let pause = options.pause { try? await Task.sleep(for: pause) }
    }
  }

  /// Every batch of edits changes something, so that a change set follows.
  private func waitForChangeSet() async {
    for await _ in scope.changeSets { return }
  }

  private func waitUntilOnline() async {
    guard let client else { return }
    for await state in client.syncStates(of: scope) where state.connection == .online { return }
  }

  // MARK: The line protocol

  private func say(_ line: String) { Console.say(prefix + line) }

  /// Answers one line.
  func answer(_ line: String) async {
    let words = line.split(separator: " ", maxSplits: 1).map(String.init)
    switch (words.first, words.dropFirst().first) {
    case (nil, _): break
    case ("go", nil): start()
    case ("stop", nil): isStopped = true
    case ("cut", nil): client?.cutConnection()  // Only within this package.
    case ("kept?", nil): await tellWhatIsKept()
    case ("quiet?", nil): say("quiet \(await becomeQuiet())")
    case ("mark", nil): await mark()
    case ("await", let other?):
      await waitForMark(of: other)
      say("seen \(other)")
    case ("print", let path): print(to: path)
    case ("notes", nil):
      say((["notes"] + editor.noted.map(String.init)).joined(separator: " "))
    case ("last", let author?):
      let journal = catalogue.journals.first { $0.author == author }
      say("last \(journal?.lastEdit ?? 0)")
    case ("report", nil):
      say("report cuts=\(lostConnections) rejected=\(rejected) models=\(scope.count)")
    default: say("error: '\(line)' is not understood; see --help")
    }
  }

  /// Every change set is in the log before anything else happens; how long that takes is up to the disk.
  private func tellWhatIsKept() async {
    scope.flush()
    let count = editor.count
    do {
      try await log?.sync()
      say("kept \(log == nil ? 0 : count)")
    } catch {
      say("error: the log cannot be written: \(error)")
    }
  }

  /// Closes the log, if there is one, once everything is in it.
  func closeLog() async throws(LogError) { try await log?.close() }

  /// Waits until all edits are made and the server has decided them. What others do may still be on
  /// its way here.
  private func becomeQuiet() async -> Int {
    await editing?.value
    scope.flush()
    guard let client else { return 0 }
    for await state in client.syncStates(of: scope) where state.pendingCount == 0 { return 0 }
    return client.syncState(of: scope)?.pendingCount ?? 0
  }

  /// The server puts everything into one order, so whoever sees a mark has seen all that its author
  /// did before.
  private func mark() async {
    _ = await becomeQuiet()
    let mark = Mark()
    mark.author = name
    catalogue.marks.append(mark)
    _ = await becomeQuiet()
    say("marked \(name)")
  }

  private func waitForMark(of author: String) async {
    while !catalogue.marks.contains(where: { $0.author == author }) {
      var token: ObservationToken?
      await withCheckedContinuation { continuation in
        var waiting: CheckedContinuation<Void, Never>? = continuation
        token = catalogue.observeChange(self, \.marks) { _ in
          waiting?.resume()
          waiting = nil
        }
      }
      token?.cancel()
    }
  }

  private func print(to path: String?) {
    let json = scope.canonicalJSON
    if let path {
      do {
        try Data(json.utf8).write(to: URL(fileURLWithPath: path))
      } catch {
        return say("error: \(path) cannot be written: \(error.localizedDescription)")
      }
    }
    say("canonical \(json.utf8.count) \(FNV1a.hash(json))")
  }
}
