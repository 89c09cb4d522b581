/// Appends the JSON text of values to an output.
package enum JSONWriter {
  /// Appends a value; `sorted` puts the keys of every object into canonical order.
  package static func write(_ value: JSONValue, sorted: Bool, to output: inout JSONOutput) {
    switch value {
    case .null: output.append(fixed: "null")
    case .bool(true): output.append(fixed: "true")
    case .bool(false): output.append(fixed: "false")
    case .integer(let value): write(value, to: &output)
    case .unsigned(let value): write(digitsOf: value, to: &output)
    case .double(let value): write(value, to: &output)
    case .float(let value): write(value, to: &output)
    case .string(let value): write(value, to: &output)
    case .object(let value): write(value, sorted: sorted, to: &output)
    case .array(let elements):
      output.append("[")
      var isFirst = true
      for element in elements {
        if !isFirst { output.append(",") }
        isFirst = false
        write(element, sorted: sorted, to: &output)
      }
      output.append("]")
    }
  }

  /// Appends an object.
  package static func write(_ object: JSONObject, sorted: Bool, to output: inout JSONOutput) {
    output.append("{")
    let members = sorted ? object.membersByKey : object.members
    var isFirst = true
    for member in members {
      if !isFirst { output.append(",") }
      isFirst = false
      write(member.key, to: &output)
      output.append(":")
      write(member.value, sorted: sorted, to: &output)
    }
    output.append("}")
  }

  /// Appends a string with its quotes, escaping no more than has to be.
  package static func write(_ string: String, to output: inout JSONOutput) {
    output.append("\"")
    var string = string
    string.withUTF8 { content in
      var start = 0
      while true {
        let end = JSONScan.plainEnd(content, from: start)
        output.append(UnsafeBufferPointer(rebasing: content[start..<end]))
        guard end < content.count else { break }
        escape(content[end], to: &output)
        start = end + 1
      }
    }
    output.append("\"")
  }

  private static func escape(_ byte: UInt8, to output: inout JSONOutput) {
    output.append("\\")
    switch byte {
    case 0x08: output.append("b")
    case 0x09: output.append("t")
    case 0x0A: output.append("n")
    case 0x0C: output.append("f")
    case 0x0D: output.append("r")
    case UInt8(ascii: "\""), UInt8(ascii: "\\"): output.append(byte)
    default:
      output.append(fixed: "u00")
      output.append(JSONScan.hexDigit(byte >> 4))
      output.append(JSONScan.hexDigit(byte & 15))
    }
  }
}
