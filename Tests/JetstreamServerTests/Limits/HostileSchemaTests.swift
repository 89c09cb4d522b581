import Foundation
import Jetstream
import JetstreamServer
import Testing

/// Schemas that a client may send to a server to harm it, or by mistake.
@Suite("Schemas that a server does not trust", .paced)
struct HostileSchemaTests: SchemaSuite {
  /// Returns a class A with these properties, given as text.
  private func text(_ properties: String) throws -> JSONValue {
    try JSONValue(
      parsing: #"{"version":1,"root":"A","classes":[{"name":"A","properties":\#(properties)}]}"#)
  }

  @Test(
    "A schema without its parts, or with parts of another kind, is refused with the place",
    arguments: [
      (#"[]"#, "schema is no object."),
      (#"null"#, "schema is no object."),
      (#"{}"#, "schema has no \"version\"."),
      (
        #"{"version":2,"root":"A","classes":[]}"#,
        "version is 2, and this server reads version 1."
      ),
      (#"{"version":1,"root":"A"}"#, "schema has no \"classes\"."),
      (#"{"version":1,"root":"A","classes":{}}"#, "classes is no array."),
      (#"{"version":1,"root":"A","classes":[7]}"#, "classes[0] is no object."),
      (#"{"version":1,"classes":[]}"#, "schema has no \"root\"."),
      (#"{"version":1,"root":["A"],"classes":[]}"#, "root is no text."),
      (#"{"version":1,"root":"A","classes":[]}"#, "root is \"A\", which is none of the classes."),
      (
        #"{"version":1,"root":"A","classes":[{"properties":[]}]}"#,
        "classes[0] has no \"name\"."
      ),
      (
        #"{"version":1,"root":"A","classes":[{"name":"","properties":[]}]}"#,
        "classes[0].name is no text."
      ),
      (
        #"{"version":1,"root":"A","classes":[{"name":"A"}]}"#,
        "classes[0] has no \"properties\"."
      ),
      (
        #"{"version":1,"root":"A","classes":[{"name":"A","superclasses":"B","properties":[]}]}"#,
        "classes[0].superclasses is no array."
      ),
      (
        #"{"version":1,"root":"A","classes":[{"name":"A","superclasses":[1],"properties":[]}]}"#,
        "classes[0].superclasses[0] is no text."
      ),
    ])
  func parts(_ text: String, _ expected: String) throws {
    #expect(try problem(JSONValue(parsing: text)) == expected)
  }

  @Test(
    "A property that cannot be is refused with the place",
    arguments: [
      (#"[{"type":"json"}]"#, "classes[0].properties[0] has no \"name\"."),
      (#"[{"name":"p"}]"#, "classes[0].properties[0] has no \"type\"."),
      (#"[{"name":"p","type":5}]"#, "classes[0].properties[0].type is no text."),
      (
        #"[{"name":"p","type":"array of Cat"}]"#,
        "classes[0].properties[0].type is \"array of Cat\", which is no type."
      ),
      (
        #"[{"name":"p","type":"json"},{"name":"p","type":"json"}]"#,
        "classes[0].properties[1] is the second property called p."
      ),
      // Canonically equivalent names are one.
      (
        #"[{"name":"\u00e9","type":"json"},{"name":"e\u0301","type":"json"}]"#,
        "classes[0].properties[1] is the second property called e\u{301}."
      ),
      (
        #"[{"name":"p","type":"reference to B"}]"#,
        "classes[0].properties[0].type names the class B, which the schema does not have."
      ),
      (
        #"[{"name":"q","type":"json"},{"name":"p","type":"collection of B"}]"#,
        "classes[0].properties[1].type names the class B, which the schema does not have."
      ),
      (
        #"[{"name":"p","type":"array of enumeration of reference to A"}]"#,
        "classes[0].properties[0].type holds models inside of a value; declare it as "
          + "ModelArray<A> or ModelDictionary<String, A>."
      ),
      (
        #"[{"name":"p","type":"Int","default":"five"}]"#,
        "classes[0].properties[0].default is no Int."
      ),
      (
        #"[{"name":"p","type":"UInt8","default":256}]"#,
        "classes[0].properties[0].default is no UInt8."
      ),
      (
        #"[{"name":"p","type":"Float","default":1e300}]"#,
        "classes[0].properties[0].default is no Float."
      ),
      (
        #"[{"name":"p","type":"optional uuid","default":"A"}]"#,
        "classes[0].properties[0].default is no optional uuid."
      ),
      (
        #"[{"name":"p","type":"dictionary of array of Int","default":{"a":[1,null]}}]"#,
        "classes[0].properties[0].default is no dictionary of array of Int."
      ),
      (
        #"[{"name":"p","type":"string"}]"#,
        "classes[0].properties[0] has no default, and null is no string."
      ),
      (
        #"[{"name":"p","type":"reference to A","default":"4d01cd3b-ae1a-429c-ae75-4c211b0adefa"}]"#,
        "classes[0].properties[0].default is that of a property that holds models, which has none."
      ),
      (
        #"[{"name":"p","type":"collection of A","default":[1]}]"#,
        "classes[0].properties[0].default is that of a property that holds models, which has none."
      ),
      (
        #"[{"name":"p","type":"dictionary of reference to A","default":{"a":1}}]"#,
        "classes[0].properties[0].default is that of a property that holds models, which has none."
      ),
      (
        #"[{"name":"p","type":"Int","default":0,"counter":1}]"#,
        "classes[0].properties[0].counter is neither true nor false."
      ),
      (
        #"[{"name":"p","type":"Double","default":0,"counter":true}]"#,
        "classes[0].properties[0].type is that of a counter, and no whole number."
      ),
      (
        #"[{"name":"p","type":"Int","default":0,"counter":true,"merge":"max"}]"#,
        "classes[0].properties[0] is a counter, and needs no merge rule."
      ),
      (
        #"[{"name":"p","type":"Int","default":0,"merge":"mine"}]"#,
        "classes[0].properties[0].merge is \"mine\", a rule that the server was not given."
      ),
      (
        #"[{"name":"p","type":"Int","default":0,"merge":null}]"#,
        "classes[0].properties[0].merge is no text."
      ),
    ])
  func properties(_ properties: String, _ expected: String) throws {
    #expect(try problem(text(properties)) == expected)
  }

  @Test("Classes may refer to each other and to themselves, and a class that is twice is refused")
  func references() {
    let circle = [
      modelClass("A", [property("b", "reference to B"), property("self", "collection of A")]),
      modelClass("B", [property("a", "dictionary of reference to A")]),
    ]
    #expect(problem(file(circle)) == nil)
    #expect(
      problem(file(circle + [modelClass("B")])) == "classes[2] is the second class called B.")
    // A class that is above one of the schema can be that of a property, and so can the one above all.
    let (x, any) = (property("x", "reference to X"), property("m", "collection of ModelObject"))
    let above = [
      modelClass("A", [x, any]),
      modelClass("B", above: ["X"]),
    ]
    #expect(problem(file(above)) == nil)
    // A weak reference holds no model, and may be to a class of which there is none.
    #expect(problem(file([modelClass("A", [property("w", "weak reference to Z")])])) == nil)
  }

  @Test("Classes that are above each other, or above themselves, are refused")
  func circularSuperclasses() {
    let chain = [
      modelClass("A", above: ["Unknown", "B", "C"]), modelClass("B", above: ["C"]), modelClass("C"),
    ]
    #expect(problem(file(chain)) == nil)
    func expect(_ classes: [JSONValue], at place: String, _ name: String) {
      #expect(
        problem(file(classes))
          == "\(place) names the class \(name), above which there are others than those that follow."
      )
    }
    expect([modelClass("A", above: ["A"])], at: "classes[0].superclasses[0]", "A")
    expect(
      [modelClass("A", above: ["B"]), modelClass("B", above: ["A"])],
      at: "classes[0].superclasses[0]", "B")
    expect(
      [modelClass("A", above: ["B", "C"]), modelClass("B", above: ["C", "A"]), modelClass("C")],
      at: "classes[0].superclasses[0]", "B")
    // Each list alone looks as if it only left something out.
    expect(
      [
        modelClass("A"), modelClass("X", above: ["Y"]), modelClass("Y", above: ["Z"]),
        modelClass("Z", above: ["X"]),
      ], at: "classes[1].superclasses[0]", "Y")
    expect(
      [modelClass("A", above: ["Unknown", "B"]), modelClass("B", above: ["C"])],
      at: "classes[0].superclasses[1]", "B")
    #expect(
      problem(file([modelClass("A", above: ["X", "Y", "X"])]))
        == "classes[0].superclasses[2] names the class X once more.")
  }

  @Test("A schema in which anything was replaced by anything is read or refused", arguments: 1...20)
  func random(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let seeds = [
      ScopeSchema(of: NewCanvas.self, and: [Circle.self]).json, ScopeSchema(of: Canvas.self).json,
    ]
    let values: [JSONValue] = [
      .null, .bool(true), 0, -1, 1e300, "", "A", "Canvas", "Shape", "named/x", "ModelObject",
      "reference to Shape", "collection of Canvas", "dictionary of reference to Shape",
      "weak reference to X", "optional optional Int", "set of optional dictionary of set of uuid",
      "enumeration of collection of Shape", "value Point", "UInt64", "max", [], [:], [[]],
      .string(String(repeating: "optional ", count: 50)), .unsigned(.max),
    ]
    func mutated(_ json: JSONValue) -> JSONValue {
      switch Int.random(in: 0..<60, using: &generator) {
      case 0: return values.randomElement(using: &generator)!
      default: break
      }
      switch json {
      case .array(var elements):
        elements = elements.map { mutated($0) }
        if Int.random(in: 0..<12, using: &generator) == 0, let one = elements.first {
          elements.insert(one, at: Int.random(in: 0...elements.count, using: &generator))
        }
        return .array(elements)
      case .object(let members):
        return .object(
          JSONObject(
            members.compactMap { member in
              Int.random(in: 0..<120, using: &generator) == 0
                ? nil : (member.key, mutated(member.value))
            }))
      default: return json
      }
    }
    var count = 0
    for _ in 0..<300 {
      let json = mutated(seeds.randomElement(using: &generator)!)
      guard let schema = try? ScopeSchema(json) else { continue }
      count += 1
      // A schema that was read is the same after it was written and read again.
      #expect(try ScopeSchema(schema.json).json.text == schema.json.text, "\(json.text)")
    }
    #expect(count > 0 && count < 300, "Seed \(seed) reads \(count) of 300.")
  }
}
