import Foundation
import FuzzTargets
import Testing

@testable import Jetstream

@Suite("Reading fragments straight from text", .paced)
struct FragmentReadingTests {
  let uuid = UUID(uuidString: "4D01CD3B-AE1A-429C-AE75-4C211B0ADEFA")!
  static let uuidText = "4d01cd3b-ae1a-429c-ae75-4c211b0adefa"

  @Test(
    "Fields come in any order, with white space, escapes and other fields",
    arguments: [
      #"{"type":"add","uuid":"\#(uuidText)","clsName":"Shape","properties":{"x":1}}"#,
      #"{"properties":{"x":1},"clsName":"Shape","uuid":"\#(uuidText)","type":"add"}"#,
      " { \"type\" :\t\"add\" ,\n\"uuid\": \"\(uuidText)\",\"clsName\" : \"Shape\" , "
        + "\"properties\" : { \"x\" : 1 } }\r\n",
      #"{"type":"add","uuid":"\#(uuidText.uppercased())","clsName":"Shape","properties":{"x":1}}"#,
      #"{"t\u0079pe":"\u0061dd","uuid":"\#(uuidText)","clsName":"Shap\u0065","properties":{"x":1}}"#,
      #"{"type":"add","uuid":"\#(uuidText)","clsName":"Shape","properties":{"x":1},"new":[{}]}"#,
      #"{"new":{"type":1},"type":"add","uuid":"\#(uuidText)","clsName":"Shape","properties":{"x":1}}"#,
    ])
  func forms(text: String) throws {
    let expected = SyncFragment(.add, uuid: uuid, className: "Shape", properties: ["x": 1])
    #expect(try SyncFragment(parsing: text.utf8) == expected)
    #expect(try SyncFragment.array(parsing: "[\(text),\(text)]".utf8) == [expected, expected])
  }

  @Test(
    "What is wrong is said as it is of a value, and errors of the JSON come first",
    arguments: [
      ("", "not JSON: unexpected end at byte 0"),
      ("{}", "not an array"),
      ("[{}", "not JSON: unexpected end at byte 3"),
      ("[{},1] x", "not JSON: trailing characters at byte 7"),
      ("[1,{}]", "element 0: not an object"),
      (#"[{"uuid":1}]"#, "element 0: type is missing"),
      (#"[{"type":"change","type":"add"}]"#, "not JSON: duplicate key \"type\" at byte 18"),
      (#"[{"type":"gone","uuid":1}]"#, "element 0: type should be \"add\" or \"change\""),
      (#"[{"type":"add","uuid":"4d01"}]"#, "element 0: uuid should be a UUID"),
      (
        #"[{"type":"add","uuid":"\#(uuidText)","clsName":1}]"#,
        "element 0: clsName should be a string"
      ),
      (
        #"[{"properties":{"a":1,"a":2}}]"#, "not JSON: duplicate key \"a\" at byte 22"
      ),
      (
        #"[{"type":"add","uuid":"\#(uuidText)","clsName":"A","properties":{}},null,2]"#,
        "element 1: not an object"
      ),
    ])
  func errors(text: String, problem: String) {
    do throws(FragmentTextError) {
      Issue.record("read \(try SyncFragment.array(parsing: text.utf8))")
    } catch {
      #expect(error.description == problem)
    }
  }

  @Test("A single fragment is refused in words, too")
  func single() {
    #expect(throws: FragmentTextError.notFragment(.notAnObject)) {
      try SyncFragment(parsing: "[]".utf8)
    }
    #expect(throws: FragmentTextError.notFragment(.missing(field: "type"))) {
      try SyncFragment(parsing: "{}".utf8)
    }
    #expect(throws: FragmentTextError.notJSON(JSONError(.unexpectedEnd, at: 1))) {
      try SyncFragment(parsing: "{".utf8)
    }
    #expect(FragmentTextError.notFragment(.notAnObject).description == "no fragment: not an object")
  }

  @Test("Depth and length are bounded as they are for values", arguments: 0...6)
  func limits(depth: Int) throws {
    let fragment =
      #"{"type":"add","uuid":"\#(Self.uuidText)","clsName":"A","properties":{"a":[{"b":[]}]}}"#
    for text in [fragment, "[\(fragment)]", "[{\"fragments\":[\(fragment)]}]"] {
      let limits = JSONLimits(maxDepth: depth)
      let failure = Result { () throws(JSONError) in try JSONValue(parsing: text, limits: limits) }
      let array = Result { () throws(FragmentTextError) in
        try SyncFragment.array(parsing: text.utf8, limits: limits)
      }
      let frame = Result { () throws(FrameError) in
        try Message.decodeFrame(text.utf8, limits: limits)
      }
      if case .failure(let error) = failure {
        #expect(error.reason == .tooDeep)
        #expect(array == .failure(.notJSON(error)))
        #expect(frame == .failure(.notJSON(error)))
      } else {
        if case .failure(.notJSON(let error)) = array { Issue.record("\(error) in \(text)") }
        #expect((try? frame.get()) != nil)
      }
    }
    #expect(throws: FragmentTextError.notJSON(JSONError(.tooLong, at: 4))) {
      try SyncFragment(parsing: fragment.utf8, limits: JSONLimits(maxBytes: 4))
    }
  }

  @Test("Operations are read with the rest of a change, and are none of an addition's")
  func operations() throws {
    let text =
      #"{"operations":{"likes":[{"add":2}]},"type":"change","uuid":"\#(Self.uuidText)","#
      + #""clsName":"Post","properties":{}}"#
    let expected = SyncFragment(
      .change, uuid: uuid, className: "Post", properties: [:], operations: ["likes": [.add(2)]])
    #expect(try SyncFragment.array(parsing: "[\(text)]".utf8) == [expected])
    #expect(
      throws: FragmentTextError.notFragment(
        .invalid(field: "operations", problem: "should not be in an addition"))
    ) { try SyncFragment(parsing: text.replacing("change", with: "add").utf8) }
    #expect(
      throws: FragmentTextError.notFragment(
        .invalid(field: "operations.likes", problem: "should add a whole number"))
    ) { try SyncFragment(parsing: text.replacing("2", with: "1.5", maxReplacements: 1).utf8) }
  }

  @Test("Random fragments come back the same, and so does every damaged one")
  func random() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var generator = SeededGenerator(seed: seed)
    let target = try #require(FuzzTarget.all.first { $0.name == "fragments" })
    let names = (0..<8).map { _ in generator.text(upTo: 30) }
    for round in 0..<300 {
      let fragments = (0..<Int(generator.next() % 5)).map { _ in
        var properties = JSONObject()
        for _ in 0..<Int(generator.next() % 24) {
          let name = names.randomElement(using: &generator)!
          properties[name] = generator.json(depth: 2)
        }
        return SyncFragment(
          generator.next() % 2 == 0 ? .add : .change, uuid: UUID(),
          className: names.randomElement(using: &generator)!, properties: properties)
      }
      let text = JSONValue.array(fragments.map(\.json)).text
      #expect(try SyncFragment.array(parsing: text.utf8) == fragments, "seed \(seed)")
      var bytes = Array(text.utf8)
      bytes[Int(generator.next() % UInt64(bytes.count))] = UInt8(
        truncatingIfNeeded: generator.next())
      do {
        try target.check(bytes)
      } catch {
        Issue.record("seed \(seed), round \(round): \(error)")
        return
      }
    }
  }
}
