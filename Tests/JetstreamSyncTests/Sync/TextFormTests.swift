import Foundation
import Jetstream
import JetstreamServer
import Testing

/// Texts that look the same, and that Swift takes for equal, but that have different bytes.
@Suite("Texts of different bytes in pending change sets")
struct TextFormTests: ScriptedSuite {
  static let (composed, decomposed) = ("\u{E9}", "e\u{301}")
  let server = ScriptedServer()
  let shape = Shape()

  private var composed: String { Self.composed }
  private var decomposed: String { Self.decomposed }

  private func bytes(_ text: String?) -> [UInt8] { Array((text ?? "").utf8) }

  @Test("A rejected text gives way to the confirmed one")
  func rejected() {
    canvas.name = decomposed
    joinWithShape()
    scope.modify { canvas.name = composed }
    #expect(bytes(canvas.name) == bytes(composed))
    server.reply(to: server.takeSyncs().first?.index ?? 0, no)
    #expect(bytes(canvas.name) == bytes(decomposed))
  }

  @Test("A text that the server has corrected is the confirmed one for later change sets")
  func corrected() {
    joinWithShape()
    scope.modify { canvas.name = decomposed }
    scope.modify { canvas.name = "x" }
    let messages = server.takeSyncs()
    server.reply(
      to: messages[0].index, FragmentReply(modifications: ["name": .string(composed)]))
    server.reply(to: messages[1].index, no)
    #expect(bytes(canvas.name) == bytes(composed))
  }

  @Test(
    "A model whose putting back is rejected, and that others hold, has its confirmed text",
    arguments: [("a", "b"), (decomposed, composed)])
  func putBack(confirmed: String, written: String) {
    shape.label = confirmed
    joinWithShape()
    scope.modify { canvas.shapes.remove(shape) }
    scope.modify {
      shape.label = written
      canvas.shapes.append(shape)
    }
    server.tell(change(canvas, ["selected": .string(shape.uuid.wireText)]))
    let messages = server.takeSyncs()
    server.reply(to: messages[0].index, ok)
    server.reply(to: messages[1].index, no, no)
    #expect(canvas.selected === shape && canvas.shapes.isEmpty)
    #expect(bytes(shape.label) == bytes(confirmed))
  }
}
