import Foundation

/// Change sets that are sealed between two messages of a batch.
extension Replica {
  /// Moves what the batch holds of properties of a model beneath a change set that was sealed between two messages of the
  /// batch, and that is the only one to touch the properties.
  ///
  /// - Parameter properties: the names of the properties, with the values that they show.
  func cover(_ properties: [(key: String, value: () -> PropertyContent)], of uuid: UUID) {
    if properties.isEmpty { return }
    if let at = batch.place(of: uuid) {
      for (key, value) in properties {
        let name = PropertyKey(uuid: uuid, name: key)
        batch.seen[name] = value()
        if let noted = noted(key, at: at) { overlay.confirm(name, value: noted) }
      }
      return
    }
    // Taken at once: a dictionary may have very many entries.
    guard let noted = batch.direct[uuid]?.take(Set(properties.map(\.key))) else { return }
    let schema = scope.model(uuid)?.schema
    for (key, value) in properties {
      let range = schema?.counterRange(of: key) ?? .unknown
      guard let change = noted.change(of: key, within: range) else { continue }
      let name = PropertyKey(uuid: uuid, name: key)
      batch.seen[name] = value()
      overlay.confirm(name, change)
    }
  }

  /// Moves what the batch holds of a model beneath a change set that adds it, and that was sealed between two messages
  /// of the batch.
  func cover(addition uuid: UUID) {
    guard let at = batch.place(of: uuid) else { return }
    for (key, value) in batch.additions[at].properties {
      let name = PropertyKey(uuid: uuid, name: key)
      if overlay.covers(name) { continue }
      coverIfAdded(name)
      overlay.confirm(name, value: value)
    }
  }
}
