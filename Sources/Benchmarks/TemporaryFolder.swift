import Foundation

/// A temporary folder that is removed when its owner releases it.
final class TemporaryFolder: Sendable {
  let path = FileManager.default.temporaryDirectory
    .appendingPathComponent("jetstream-benchmark-\(UUID().uuidString)").path

  init() {
    do {
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    } catch {
      preconditionFailure("The folder \(path) cannot be made: \(error)")
    }
  }

  deinit { remove() }

  func remove() { try? FileManager.default.removeItem(atPath: path) }
}
