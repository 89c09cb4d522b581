import Jetstream
import Testing

@testable import JetstreamServer

@Suite("Rules of properties in the JSON of a schema", .paced)
struct FieldRuleSchemaTests: SchemaSuite {
  /// Returns a schema with one property, given as text, behind its name.
  private func text(_ property: String) throws -> JSONValue {
    try JSONValue(
      parsing: """
        {"version":1,"root":"A","classes":[{"name":"A","properties":[{"name":"p",\(property)}]}]}
        """)
  }

  @Test("What is written is read again, rule by rule")
  func roundTrip() throws {
    let written = ScopeSchema(of: Shop.self)
    let read = try ScopeSchema(JSONValue(parsing: written.json.text))
    #expect(read.json.text == written.json.text)
    let product = try #require(read.schema["Product"])
    #expect(
      product.ruled?.map { "\($0.wireName): \($0.rules!.words)" } == [
        "quantity: from 0 to 100", "text: of 1 to 10 parts", "slug: matching [a-z0-9-]+",
        "author: immutable", "sku: unique", "tags: of at most 3 parts", "best: at most 10",
      ])
    #expect(product.hasUnique && read.schema.hasUnique)
    #expect(
      written.json.text.contains(
        #"{"name":"quantity","type":"Int","default":1,"range":[0,100]}"#))
    #expect(written.json.text.contains(#""length":[null,3]"#) == false)
    #expect(written.json.text.contains(#""length":[0,3]"#))
  }

  @Test("A type whose name has spaces is read again, as that of a generic type")
  func genericType() throws {
    struct Pair<First: Codable & Equatable & Sendable, Second: Codable & Equatable & Sendable>:
      CodableValue
    {
      var first: First
      var second: Second
    }
    final class Mixer: ModelObject {
      @Property var levels = Pair(first: 1, second: "x")
      @Property var more: [Pair<Int, String>] = []
    }
    let written = ScopeSchema(of: Mixer.self)
    #expect(written.json.text.contains(#""type":"value Pair<Int, String>""#))
    let read = try ScopeSchema(JSONValue(parsing: written.json.text))
    #expect(read.json.text == written.json.text)
  }

  @Test("A schema without rules is written and read as before")
  func without() throws {
    let schema = try ScopeSchema(text(#""type":"Int","default":0"#))
    #expect(schema.schema.root.ruled == nil && !schema.schema.hasUnique)
    #expect(
      schema.json.text
        == #"{"version":1,"root":"A","classes":[{"name":"A","properties":["#
        + #"{"name":"p","type":"Int","default":0}]}]}"#)
  }

  @Test(
    "Bounds may be left open, and are numbers of any kind",
    arguments: [
      (#""type":"Int","default":0,"range":[null,5]"#, "at most 5"),
      (#""type":"Double","default":0,"range":[0.5,null]"#, "at least 0.5"),
      (
        #""type":"UInt64","default":0,"range":[0,18446744073709551615]"#,
        "from 0 to 18446744073709551615"
      ),
      (#""type":"decimal","default":"0","range":["0.01","9.99"]"#, "from 0.01 to 9.99"),
      (#""type":"string","default":"","length":[null,5]"#, "of at most 5 parts"),
      (#""type":"string","default":"","length":[2,null]"#, "of at least 2 parts"),
      (#""type":"string","default":"","unique":false,"immutable":true"#, "immutable"),
    ])
  func open(_ property: String, _ words: String) throws {
    #expect(try ScopeSchema(text(property)).schema.root.properties[0].rules?.words == words)
  }

  @Test(
    "A rule that cannot be is refused with the place",
    arguments: [
      (#""type":"Int","default":0,"range":5"#, ".range is no array."),
      (#""type":"Int","default":0,"range":[1]"#, ".range has no two bounds."),
      (
        #""type":"Int","default":0,"range":[1,2,3]"#,
        ".range has 3 elements, and at most 2 are read."
      ),
      (#""type":"Int","default":0,"range":[null,null]"#, ".range has no bound but null."),
      (
        #""type":"Int","default":0,"range":[2,1]"#,
        ".range has bounds that are no numbers in their order."
      ),
      (
        #""type":"Int","default":0,"range":["a",1]"#,
        ".range has bounds that are no numbers in their order."
      ),
      (#""type":"string","default":"","range":[0,1]"#, " has a range, and is no number."),
      (
        #""type":"string","default":"","length":[-1,1]"#,
        ".length has bounds that are no whole numbers from 0 on in their order."
      ),
      (
        #""type":"string","default":"","length":[0.5,1]"#,
        ".length has bounds that are no whole numbers from 0 on in their order."
      ),
      (
        #""type":"string","default":"","length":[3,2]"#,
        ".length has bounds that are no whole numbers from 0 on in their order."
      ),
      (
        #""type":"Int","default":0,"length":[0,1]"#,
        " has a length, and is neither a text nor a list."
      ),
      (#""type":"string","default":"","pattern":7"#, ".pattern is no text."),
      (#""type":"string","default":"","pattern":"(a""#, ".pattern has a ( without its )."),
      (
        #""type":"string","default":"","pattern":"(a*)*\\1""#,
        ".pattern has a \\1, which has no meaning here."
      ),
      (
        #""type":"string","default":"","pattern":"(((a{99}){99}){99}){99}""#,
        ".pattern has more than 128 characters, each repetition counted."
      ),
      (#""type":"Int","default":0,"pattern":"a""#, " has a pattern, and is no text."),
      (#""type":"Int","default":0,"immutable":1"#, ".immutable is neither true nor false."),
      (#""type":"collection of A","immutable":true"#, " is immutable, and holds models."),
      (#""type":"reference to A","unique":true"#, " is unique, and holds models."),
      (#""type":"Int","default":0,"counter":true,"unique":true"#, " is unique, and is a counter."),
    ])
  func refused(_ property: String, _ expected: String) throws {
    #expect(try problem(text(property)) == "classes[0].properties[0]" + expected)
  }

  @Test("A pattern of more than 256 bytes is refused")
  func longPattern() throws {
    let long = String(repeating: "a?", count: 129)
    #expect(
      try problem(text(#""type":"string","default":"","pattern":"\#(long)""#))
        == "classes[0].properties[0].pattern is longer than 256 bytes.")
  }
}
