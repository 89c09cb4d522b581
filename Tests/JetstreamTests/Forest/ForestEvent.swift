/// What an immediate observer is to be told. Models are numbers, values are texts.
enum ForestEvent: Hashable, CustomStringConvertible {
  case property(Int, String, old: String, new: String)
  case added(Int, to: Int, String)
  case removed(Int, from: Int, String)
  case attached(Int, Int)
  case detached(Int, Int)

  var node: Int {
    switch self {
    case .property(let node, _, _, _), .added(let node, _, _), .removed(let node, _, _),
      .attached(let node, _), .detached(let node, _):
      node
    }
  }

  var description: String {
    switch self {
    case .property(let node, let key, let old, let new): "\(node).\(key): \(old) -> \(new)"
    case .added(let node, let parent, let key): "\(node) added to \(parent).\(key)"
    case .removed(let node, let parent, let key): "\(node) removed from \(parent).\(key)"
    case .attached(let node, let scope): "\(node) attached to scope \(scope)"
    case .detached(let node, let scope): "\(node) detached from scope \(scope)"
    }
  }
}
