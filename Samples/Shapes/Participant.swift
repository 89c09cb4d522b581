import Foundation
import Jetstream

/// A process that takes part in a drawing that another one serves: it tells what happens there, and
/// moves a shape of its own along a circle.
@Studio
final class Participant {
  private let canvas = Canvas()
  private let scope: Scope
  private let client: Client
  private let signals: StopSignals
  private var denied: ObservationToken?
  private let shape = Shape(x: 0, y: 0, width: 90, height: 90, color: .rose)
  private let center = (
    x: Float.random(in: 250...Canvas.width - 340), y: Float.random(in: 200...Canvas.height - 290)
  )

  init(url: String, signals: StopSignals) {
    self.signals = signals
    scope = Scope(name: "Canvas", root: canvas)
    client = Client(url: url, backoff: Backoff(limit: .seconds(5)))
    client.onStatusChange.listen(self) { _, status in Console.say("status: \(status)") }
    client.onDiagnostic.listen(self) { _, event in Console.say("note: \(event)") }
    scope.conflicts.onAdd.listen(self) { _, conflict in
      if case .rejected(let error) = conflict.reason { Console.say("rejected: \(error)") }
    }
  }

  /// Runs until the process is asked to end or the server refuses.
  func run() async {
    let work = Task { await takePart() }
    await signals.next()
    work.cancel()
    // The server may decide nothing for as long as it likes.
    Console.say("Leaving; another signal ends it at once.")
    await leave()
    Console.say("Left.")
  }

  private func takePart() async {
    do throws(SyncError) {
      try await client.connect()
      try await client.fetch(scope)
    } catch {
      if Task.isCancelled { return }
      Console.complain(error.description)
      exit(1)
    }
    Console.say("joined \"\(canvas.name ?? "")\" with \(canvas.shapes.count) shapes")
    let narrator = Narrator(canvas, say: Console.say)
    narrator.ignored = shape
    // A session that replaces a lost one may be with a server that has never seen the shape: then the
    // server's full state arrives, without it. Appending a shape that is there does nothing.
    scope.onRemoteChanges.listen(self, filter: { $0.isFullState }) { me, _ in
      me.canvas.shapes.append(me.shape)
    }
    denied = client.onSessionDenied.listen(self) { _, error in
      Console.complain(error.description)
      exit(1)
    }
    place(angle: 0)
    canvas.shapes.append(shape)
    var angle: Float = 0
    while !Task.isCancelled {
      try? await Task.sleep(for: .milliseconds(50))
      // While offline each step would be kept, to be sent later.
      guard client.status == .online else { continue }
      angle += 0.04
      place(angle: angle)
    }
  }

  private func place(angle: Float) {
    shape.x = (center.x + 130 * cos(angle)).rounded()
    shape.y = (center.y + 130 * sin(angle)).rounded()
  }

  /// Takes the own shape away, and waits until the server knows, if it can be reached.
  private func leave() async {
    canvas.shapes.remove(shape)
    scope.flush()
    for await state in client.syncStates(of: scope) {
      if state.pendingCount == 0 || state.connection != .online { break }
    }
    denied?.cancel()
    client.close()
  }
}
