import Foundation
import Jetstream
import JetstreamServer
import Testing

/// Schemas of clients that a directory has, but cannot read.
@Suite("Schemas that cannot be read")
struct UnreadableSchemaTests {
  enum Kind: String, CaseIterable, CustomTestStringConvertible {
    case loop, folder, text

    var testDescription: String { rawValue }
  }

  @Test(
    "A schema that is there and cannot be read is an error with its path", arguments: Kind.allCases)
  func unreadable(_ kind: Kind) async throws {
    let files = try TemporaryDirectory()
    let storage = try ScopeDirectory(files.path)
    let schema = ScopeSchema(of: Canvas.self)
    try await storage.keep(schema, of: "a")
    let path = files.path + "/scopes/a/schema.json"
    let aside = files.path + "/aside"
    let manager = FileManager.default
    try manager.moveItem(atPath: path, toPath: aside)
    switch kind {
    case .loop: try manager.createSymbolicLink(atPath: path, withDestinationPath: path)
    case .folder: try manager.createDirectory(atPath: path, withIntermediateDirectories: false)
    case .text: try Data("{".utf8).write(to: URL(fileURLWithPath: path))
    }
    let error = await #expect(throws: StorageError.self) { try await storage.find("a") }
    guard case .unreadable(path, _)? = error else {
      Issue.record("\(error as Any)")
      return
    }
    try manager.removeItem(atPath: path)
    #expect(try await storage.find("a").schema == nil)
    try manager.moveItem(atPath: aside, toPath: path)
    #expect(try await storage.find("a").schema?.json == schema.json)
  }
}
