import Foundation
import Testing

@Suite(
  "A catalogue and its log, in one process after the other", .serialized, .timeLimit(.minutes(5)),
  .enabled(if: Place.data != nil, "needs citm_catalog.json in JETSTREAM_DATA or ../shared/data"))
struct RecordingTests {
  @Test("Edits are restored, opened at any sequence number, and undone to the import")
  func record() async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("catalogue-log-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let recorder = try CatalogueProcess([
      "record", "--log", folder.path, "--file", try #require(Place.data), "--edits", "100",
      "--seed", "31",
    ])
    defer { recorder.kill() }
    let imported = try await recorder.expect("canonical")
    #expect(try await recorder.expect("edited") == "100, 100 change sets")
    let edited = try await recorder.expect("canonical")
    #expect(edited != imported)

    let reader = try CatalogueProcess(["replay", "--log", folder.path, "--check", "25"])
    defer { reader.kill() }
    #expect(try await reader.expect("checked") == "4")
    #expect(try await reader.expect("canonical") == edited)

    let undoer = try CatalogueProcess(["replay", "--log", folder.path, "--undo"])
    defer { undoer.kill() }
    #expect(try await undoer.expect("canonical") == imported)

    let traveller = try CatalogueProcess(["replay", "--log", folder.path, "--at", "0"])
    defer { traveller.kill() }
    #expect(try await traveller.expect("canonical") == imported)
  }
}
