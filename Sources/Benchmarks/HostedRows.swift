import Foundation
import Jetstream
import JetstreamServer

/// The memory that a server needs for each model that it hosts: the catalogue of `citm_catalog.json`, several times, from
/// a schema and with the model classes. Without the file, which is looked for in `JETSTREAM_DATA` and `../shared/data`,
/// there is no such row.
func hostedRows() -> [Row] {
  guard let file = HostedCatalogue.file else { return [] }
  return [
    Row(
      name: "memory of a hosted model, from a schema", unit: "bytes",
      peerName: "with the model classes", bar: 0.5, rounds: 3
    ) {
      let catalogue = HostedCatalogue(file)
      return Probes(
        ours: { catalogue.measure(catalogue.makeRows) },
        peer: { catalogue.measure(catalogue.makeModels) })
    }
  ]
}

private final class HostedCatalogue {
  static var file: String? {
    let folder = ProcessInfo.processInfo.environment["JETSTREAM_DATA"] ?? "../shared/data"
    let file = folder + "/citm_catalog.json"
    return FileManager.default.isReadableFile(atPath: file) ? file : nil
  }

  private static let copies = 40
  private let schema = ScopeSchema(of: Catalogue.self)
  /// The state as JSON, which is read anew for each copy: copies must not share their texts.
  private let state: [[UInt8]]
  private var kept: [ServerEngine] = []

  init(_ file: String) {
    do {
      let catalogue = try Catalogue(contentsOfFile: file)
      let scope = Scope(name: "Catalogue", root: catalogue, ticker: .manual())
      state = scope.sharedState().map { Array("\($0.json)".utf8) }
    } catch {
      preconditionFailure("The catalogue cannot be read: \(error)")
    }
  }

  func makeRows() -> any Hostable { RowsContent(name: "Catalogue", schema) }

  func makeModels() -> any Hostable {
    Scope(name: "Catalogue", root: Catalogue(), ticker: .manual())
  }

  /// Returns the bytes per model.
  func measure(_ make: () -> any Hostable) -> Double {
    // Other rows have freed memory, which would be used before any is taken from the system.
    ProcessMemory.trim()
    let before = ProcessMemory.knownBytes
    for _ in 0..<Self.copies { host(make()) }
    let after = ProcessMemory.knownBytes
    return Double(after - before) / Double(Self.copies * state.count)
  }

  private func host(_ content: any Hostable) {
    let engine = ServerEngine(
      hooks: .init(
        fetch: { _, _, _ in .failure(.gone("")) }, makeToken: { "" }, random: { 0.5 })
    ) { _ in }
    do {
      let fragments = try state.map { try SyncFragment(json: JSONValue(parsing: $0)) }
      let history = ScopeHistory(
        epoch: "e", sequence: 0, state: fragments, clients: [:])
      try engine.host(content, history: history) { _ in }
    } catch {
      preconditionFailure("The catalogue cannot be hosted: \(error)")
    }
    kept.append(engine)
  }
}
