import Foundation

extension [SyncFragment] {
  /// The canonical form of a full state, whose models are all different ones.
  package var canonicalJSON: String {
    var models = JSONObject()
    models.reserveCapacity(count)
    for fragment in self {
      models.append(
        newKey: fragment.uuid.wireText,
        ["clsName": .string(fragment.className), "properties": .object(fragment.properties)])
    }
    let root: JSONValue = first.map { .string($0.uuid.wireText) } ?? .null
    let content: JSONValue = .object(JSONObject([("models", .object(models)), ("root", root)]))
    return content.canonicalText
  }
}
