import Jetstream
import Testing

@testable import JetstreamServer

/// A suite that reads schemas.
protocol SchemaSuite {}

extension SchemaSuite {
  /// Returns the error of reading a schema; nil if it is read.
  func problem(_ json: JSONValue) -> String? {
    do throws(SchemaError) {
      _ = try ScopeSchema(json)
      return nil
    } catch {
      return "\(error)"
    }
  }

  /// Returns a schema with these classes, the root of which is called A.
  func file(_ classes: [JSONValue]) -> JSONValue {
    ["version": 1, "root": "A", "classes": .array(classes)]
  }

  func modelClass(
    _ name: String, above: [String]? = nil, _ properties: [JSONValue] = []
  ) -> JSONValue {
    var result: JSONObject = ["name": .string(name), "properties": .array(properties)]
    if let above { result["superclasses"] = .array(above.map { .string($0) }) }
    return .object(result)
  }

  func property(_ name: String, _ type: String) -> JSONValue {
    ["name": .string(name), "type": .string(type)]
  }
}

/// Schemas that are too large for a server, each in its own way.
@Suite("Limits of the schemas that a server reads", .paced)
struct SchemaLimitTests: SchemaSuite {
  @Test("A schema of too much is refused, and one of as much as is allowed is read")
  func limits() {
    func classes(_ count: Int) -> JSONValue {
      file([modelClass("A")] + (1..<count).map { modelClass("\($0)") })
    }
    #expect(problem(classes(1_000)) == nil)
    #expect(problem(classes(1_001)) == "classes has 1001 elements, and at most 1000 are read.")

    func properties(_ count: Int) -> JSONValue {
      let properties = (0..<count).map { property("\($0)", "json") }
      return file([modelClass("A", Array(properties.prefix(3))), modelClass("B", properties)])
    }
    #expect(problem(properties(4_997)) == nil)
    #expect(
      problem(properties(4_998))
        == "classes[1].properties[4997] is one more than the 5000 that are read.")

    func dictionaries(_ count: Int) -> JSONValue {
      file([modelClass("A", (0..<count).map { property("\($0)", "dictionary of reference to A") })])
    }
    #expect(problem(dictionaries(100)) == nil)
    #expect(
      problem(dictionaries(101))
        == "classes[0].properties[100] is one more dictionary than the 100 that are read of a class."
    )

    func superclasses(_ count: Int) -> JSONValue {
      file([modelClass("A", above: (0..<count).map { "\($0)" })])
    }
    #expect(problem(superclasses(64)) == nil)
    #expect(
      problem(superclasses(65))
        == "classes[0].superclasses has 65 elements, and at most 64 are read.")
  }

  @Test("Text of more than 256 KiB is refused, whatever it is")
  func size() {
    func schema(_ bytes: Int) -> JSONValue {
      guard case .object(var schema) = file([modelClass("A")]) else { return .null }
      schema["comment"] = ""
      let rest = bytes - JSONValue.object(schema).text.utf8.count
      schema["comment"] = .string(String(repeating: "x", count: rest))
      return .object(schema)
    }
    #expect(problem(schema(256 << 10)) == nil)
    #expect(
      problem(schema(256 << 10 | 1))
        == "schema has 262145 bytes of text, and at most 262144 are read.")
  }

  @Test("A schema that is too long to be read once its defaults are named is refused")
  func defaults() throws {
    func schema(_ nameBytes: Int) -> JSONValue {
      let names = (0..<4_000).map { number in
        let digits = "\(number)"
        return String(repeating: "x", count: nameBytes - digits.utf8.count) + digits
      }
      return file([modelClass("A", names.map { property($0, "json") })])
    }
    let fits = try ScopeSchema(schema(20))
    _ = try ScopeSchema(JSONValue(parsing: Array(fits.json.text.utf8)))
    let (nearly, bytes) = (schema(35), schema(35).text.utf8.count)
    #expect(bytes <= 256 << 10)
    #expect(
      problem(nearly)
        == "schema with its defaults has \(bytes + 4_000 * 15) bytes of text, and at most 262144 are "
        + "read.")
  }

  @Test("Names have at most 256 bytes")
  func names() {
    // Two bytes each.
    let (longest, long) = (String(repeating: "é", count: 128), String(repeating: "é", count: 129))
    #expect(
      problem(
        file([
          modelClass("A", above: [longest], [property(longest, "reference to \(longest)")])
        ])) == nil)
    let tooLong = "is longer than 256 bytes."
    #expect(problem(file([modelClass(long)])) == "classes[0].name \(tooLong)")
    #expect(
      problem(file([modelClass("A", above: [long])])) == "classes[0].superclasses[0] \(tooLong)")
    #expect(
      problem(file([modelClass("A", [property(long, "json")])]))
        == "classes[0].properties[0].name \(tooLong)")
    #expect(
      problem(["version": 1, "root": .string(long), "classes": [modelClass("A")]])
        == "root \(tooLong)")
    let rule: JSONValue = ["name": "p", "type": "json", "merge": .string(long)]
    #expect(
      problem(file([modelClass("A", [rule])])) == "classes[0].properties[0].merge \(tooLong)")
    // An error quotes short pieces of the schema only.
    #expect(
      problem(["version": .string(String(repeating: "1", count: 1_000))])?.utf8.count ?? .max < 150)
  }

  @Test("Types are nested at most eight deep, however long their text is")
  func deepTypes() {
    func type(_ depth: Int, _ prefix: String = "array of ") -> JSONValue {
      let type = String(repeating: prefix, count: depth) + "json"
      let property: JSONValue = ["name": "p", "type": .string(type), "default": []]
      return file([modelClass("A", [property])])
    }
    #expect(problem(type(8)) == nil)
    let place = "classes[0].properties[0].type"
    for prefix in ["array of ", "set of ", "dictionary of ", "enumeration of ", "optional "] {
      #expect(problem(type(9, prefix)) == "\(place) is nested more than 8 levels deep.")
      #expect(problem(type(5_000, prefix)) == "\(place) is longer than 512 bytes.")
    }
  }

  @Test("Types in the schema of a client are nested at most three deep")
  func clientsTypes() {
    let world = OpeningWorld()
    world.connect(1)
    func fetch(_ name: String, _ type: String) {
      let property: JSONValue = ["name": "p", "type": .string(type), "default": []]
      world.fetch(name, on: 1, schema: file([modelClass("A", [property])]))
    }
    fetch("A", "array of optional array of json")
    #expect(world.take(1).isEmpty && world.takeSteps() == ["open A"])
    fetch("B", "array of optional array of set of json")
    #expect(world.take(1) == ["rejected"] && world.takeSteps().isEmpty)
    let deep = property("p", "optional optional optional optional Int")
    do throws(SchemaError) {
      _ = try ScopeSchema(ofClient: file([modelClass("A", [deep])]))
      Issue.record("A type is nested too deep.")
    } catch {
      #expect(
        "\(error)"
          == "classes[0].properties[0].type is nested more than 3 levels deep, which the schema of a "
          + "client must not be.")
    }
  }

  @Test("Defaults are nested at most 32 deep")
  func deepDefaults() {
    func nested(_ depth: Int, _ wrap: (JSONValue) -> JSONValue) -> JSONValue {
      let value = (0..<depth).reduce(JSONValue.integer(1)) { value, _ in wrap(value) }
      return file([modelClass("A", [["name": "p", "type": "json", "default": value]])])
    }
    for wrap in [{ [$0] }, { ["a": $0] }] as [(JSONValue) -> JSONValue] {
      #expect(problem(nested(32, wrap)) == nil)
      #expect(
        problem(nested(33, wrap))
          == "classes[0].properties[0].default is nested more than 32 levels deep.")
    }
  }
}
