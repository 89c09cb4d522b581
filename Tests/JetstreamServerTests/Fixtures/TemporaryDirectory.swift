import Foundation

/// A directory of its own for a test, gone with the last reference to it.
final class TemporaryDirectory {
  let path = FileManager.default.temporaryDirectory
    .appendingPathComponent("jetstream-test-\(UUID().uuidString)").path

  init() throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}
