import Jetstream

/// Where two scopes differ, property by property, with UUIDs cut to their first digits.
func differences(_ a: Scope, _ b: Scope) -> [String] {
  let left = models(a)
  let right = models(b)
  var lines: [String] = []
  for (uuid, properties) in left {
    guard let other = right[uuid] else {
      lines.append("only in the first: \(uuid.prefix(4))")
      continue
    }
    for (key, value) in properties {
      let theirs = other[key] ?? .null
      if value.canonicalText == theirs.canonicalText { continue }
      lines.append("\(uuid.prefix(4)).\(key): \(short(value)) | \(short(theirs))")
    }
  }
  for uuid in right.keys where left[uuid] == nil {
    lines.append("only in the second: \(uuid.prefix(4))")
  }
  return lines
}

/// A value with UUIDs cut short.
func short(_ value: JSONValue) -> String {
  switch value {
  case .string(let text): String(text.count == 36 ? text.prefix(4) : text[...])
  case .array(let elements): "[" + elements.map(short).joined(separator: " ") + "]"
  default: value.canonicalText
  }
}

private func models(_ scope: Scope) -> [String: JSONObject] {
  var result: [String: JSONObject] = [:]
  for fragment in scope.fullState() {
    result[fragment.uuid.uuidString.lowercased()] = fragment.properties
  }
  return result
}
