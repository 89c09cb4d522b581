import Foundation
import Jetstream
import Testing

@testable import catalogue

@Suite(
  "A catalogue and its log, in one process after the other", .serialized, .timeLimit(.minutes(5)))
struct RecordingTests {
  @Test("Edits are restored, opened at any sequence number, and undone to the import")
  func record() async throws {
    let (place, data) = try Place.folder(performances: 60)
    let folder = place.appendingPathComponent("log")
    defer { try? FileManager.default.removeItem(at: place) }
    let recorder = try CatalogueProcess([
      "record", "--log", folder.path, "--file", data, "--edits", "100",
      "--seed", "31",
    ])
    defer { recorder.terminate() }
    let imported = try await recorder.expect("canonical")
    #expect(try await recorder.expect("edited") == "100, 100 change sets")
    let edited = try await recorder.expect("canonical")
    #expect(edited != imported)

    let reader = try CatalogueProcess(["replay", "--log", folder.path, "--check", "25"])
    defer { reader.terminate() }
    #expect(try await reader.expect("checked") == "4")
    #expect(try await reader.expect("canonical") == edited)

    let undoer = try CatalogueProcess(["replay", "--log", folder.path, "--undo"])
    defer { undoer.terminate() }
    #expect(try await undoer.expect("canonical") == imported)

    let traveller = try CatalogueProcess(["replay", "--log", folder.path, "--at", "0"])
    defer { traveller.terminate() }
    #expect(try await traveller.expect("canonical") == imported)
  }

  @Test("A recorder signs its journal and its change sets with the name that it is given")
  @MainActor
  func signs() async throws {
    let (place, data) = try Place.folder(performances: 24)
    let folder = place.appendingPathComponent("log")
    defer { try? FileManager.default.removeItem(at: place) }
    let recorded = try await runCatalogue([
      "record", "--log", folder.path, "--file", data, "--edits", "20", "--name", "ada",
    ])
    try #require(recorded.status == 0, "\(recorded.errors)")
    let log = try LogReader(folder.path)
    let catalogue = Catalogue()
    try log.restore(into: Scope(name: "Catalogue", root: catalogue))
    #expect(catalogue.journals.map(\.author) == ["ada"])
    #expect(try Set(log.changeSets(in: 1...20).map { $0.1.author }) == ["ada"])
  }

  @Test("A log that cannot be locked is replayed, and nothing in its folder changes")
  func withoutLock() async throws {
    let (place, data) = try Place.folder(performances: 24)
    let folder = place.appendingPathComponent("log")
    defer { try? FileManager.default.removeItem(at: place) }
    let recorded = try await runCatalogue([
      "record", "--log", folder.path, "--file", data, "--edits", "20",
    ])
    #expect(recorded.status == 0)
    // Not even root opens a folder for writing.
    let lock = folder.appendingPathComponent("lock")
    try FileManager.default.removeItem(at: lock)
    try FileManager.default.createDirectory(at: lock, withIntermediateDirectories: false)
    let before = try contents(of: folder)
    let replayed = try await runCatalogue(["replay", "--log", folder.path])
    #expect(replayed.status == 0 && replayed.lines == recorded.lines.suffix(1))
    #expect(replayed.errors.isEmpty, "\(replayed.errors)")
    #expect(try contents(of: folder) == before)
  }

  private func contents(of folder: URL) throws -> [String: Data?] {
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    return Dictionary(
      uniqueKeysWithValues: names.map {
        ($0, try? Data(contentsOf: folder.appendingPathComponent($0)))
      })
  }
}

@Suite("Replaying what is not there", .timeLimit(.minutes(5)))
struct MissingLogTests {
  @Test("A folder that is not there is not made, and the error names it")
  func missingFolder() async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("catalogue-log-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let replayed = try await runCatalogue(["replay", "--log", folder.path])
    #expect(replayed.status == 1 && replayed.lines.isEmpty)
    #expect(replayed.errors.contains(folder.path), "\(replayed.errors)")
    #expect(!FileManager.default.fileExists(atPath: folder.path))
  }

  @Test("A folder without a log stays empty, and the error names it")
  func emptyFolder() async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("catalogue-log-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    let replayed = try await runCatalogue(["replay", "--log", folder.path])
    #expect(replayed.status == 1 && replayed.errors.contains("there is no log in \(folder.path)"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
  }
}
