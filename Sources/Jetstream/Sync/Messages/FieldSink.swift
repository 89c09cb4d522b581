import Foundation

/// A receiver of fields in their order: the JSON text of an object, or the object itself.
package protocol FieldSink: ~Copyable {
  /// Puts a whole number.
  mutating func put(_ key: StaticString, _ number: Int)
  /// Puts a UUID in lower case.
  mutating func put(_ key: StaticString, _ uuid: UUID)
  /// Puts any other value.
  mutating func put(_ key: StaticString, _ value: JSONValue)
  /// Puts an array of fragments, whose text may be there already.
  mutating func put(_ key: StaticString, _ fragments: [SyncFragment], as text: FragmentsText?)
  /// Puts an array of replies.
  mutating func put(_ key: StaticString, _ replies: [FragmentReply])
  /// Puts an object of the fields that `write` puts.
  mutating func put(_ key: StaticString, fields write: (inout Self) -> Void)
}

extension FieldSink where Self: ~Copyable {
  /// Puts an array of fragments.
  package mutating func put(_ key: StaticString, _ fragments: [SyncFragment]) {
    put(key, fragments, as: nil)
  }
}

extension JSONObject: FieldSink {
  package mutating func put(_ key: StaticString, _ number: Int) {
    self["\(key)"] = .integer(Int64(number))
  }

  package mutating func put(_ key: StaticString, _ uuid: UUID) {
    self["\(key)"] = .string(uuid.wireText)
  }

  package mutating func put(_ key: StaticString, _ value: JSONValue) { self["\(key)"] = value }

  package mutating func put(
    _ key: StaticString, _ fragments: [SyncFragment], as text: FragmentsText?
  ) {
    // A server may have the text alone; see ``ScopeState/text``.
    if fragments.isEmpty, let text,
      let value = try? JSONValue(parsing: text.bytes, limits: .trusted)
    {
      self["\(key)"] = value
    } else {
      self["\(key)"] = .array(fragments.map(\.json))
    }
  }

  package mutating func put(_ key: StaticString, _ replies: [FragmentReply]) {
    self["\(key)"] = .array(replies.map(\.json))
  }

  package mutating func put(_ key: StaticString, fields write: (inout JSONObject) -> Void) {
    var object = JSONObject()
    write(&object)
    self["\(key)"] = .object(object)
  }
}

/// Writes fields with a comma in front of each: those after the first one of an object, or all of them, as
/// ``JSONOutput/object(_:)`` takes them.
extension JSONOutput: FieldSink {
  package mutating func put(_ key: StaticString, _ number: Int) {
    append(key: key)
    JSONWriter.write(Int64(number), to: &self)
  }

  package mutating func put(_ key: StaticString, _ uuid: UUID) {
    append(key: key)
    append("\"")
    uuid.writeWireText(to: &self)
    append("\"")
  }

  package mutating func put(_ key: StaticString, _ value: JSONValue) {
    append(key: key)
    JSONWriter.write(value, sorted: false, to: &self)
  }

  package mutating func put(
    _ key: StaticString, _ fragments: [SyncFragment], as text: FragmentsText?
  ) {
    append(key: key)
    guard let text else { return put(fragments) }
    if text.isShort || !leaveOut(text.bytes) { append(text.bytes) }
  }

  mutating func put(_ fragments: [SyncFragment]) {
    append("[")
    for place in fragments.indices {
      if place > 0 { append(",") }
      fragments[place].write(to: &self)
    }
    append("]")
  }

  package mutating func put(_ key: StaticString, _ replies: [FragmentReply]) {
    append(key: key)
    if replies.count == 1, replies.areAllPlain { return append(fixed: "[{}]") }
    append("[")
    var last = 0..<0
    for place in replies.indices {
      if place > 0 { append(",") }
      let start = count
      if replies[place].isPlain {
        append(fixed: "{}")
      } else if place > 0, replies[place].modifications == nil,
        replies[place] == replies[place - 1]
      {
        // One reason may reject thousands of fragments. Equal values may be written in different ways.
        append(copyOf: last)
      } else {
        JSONWriter.write(replies[place].json, sorted: false, to: &self)
      }
      last = start..<count
    }
    append("]")
  }

  package mutating func put(_ key: StaticString, fields write: (inout JSONOutput) -> Void) {
    append(key: key)
    object(write)
  }
}
