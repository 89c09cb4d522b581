import Testing

@testable import Jetstream

@Suite("JSON objects", .paced)
struct JSONObjectTests {
  @Test("A new key goes to the end, a known one stays where it is")
  func order() {
    var object: JSONObject = ["b": 1, "a": 2]
    object["c"] = 3
    object["b"] = 4
    #expect(object.keys == ["b", "a", "c"])
    #expect(object["b"] == 4)
    #expect(object.map(\.value) == [4, 2, 3])
  }

  @Test("Setting nil removes, setting null does not")
  func removal() {
    var object: JSONObject = ["a": 1, "b": 2]
    object["a"] = nil
    object["x"] = nil
    #expect(object.keys == ["b"])
    object["b"] = .null
    #expect(object["b"] == .some(.null))
    #expect(object["a"] == nil)
    #expect(object != [:])
  }

  @Test("Equality and hashing ignore the order")
  func equality() {
    let object: JSONObject = ["a": 1, "b": ["x": 1, "y": 2]]
    let other: JSONObject = ["b": ["y": 2, "x": 1], "a": 1]
    #expect(object == other)
    #expect(object.hashValue == other.hashValue)
    #expect(object != ["a": 1])
    #expect(object != ["a": 1, "c": ["x": 1, "y": 2]])
    #expect(object != ["a": 2, "b": ["x": 1, "y": 2]])
  }

  @Test("An object agrees with a dictionary whatever is done to it")
  func model() {
    let seed = UInt64.random(in: 0 ... .max)
    var generator = SeededGenerator(seed: seed)
    var object = JSONObject()
    var keys: [String] = []
    var values: [String: JSONValue] = [:]
    for step in 0..<5_000 {
      let key = "key \(generator.next() % 40)"
      if step % 100 == 99 {
        let some = Set((0..<40).map { "key \($0)" }.filter { _ in generator.next() % 2 == 0 })
        keys.removeAll { some.contains($0) }
        for key in some { values[key] = nil }
        object.removeAll { key, _ in some.contains(key) }
      } else if generator.next().isMultiple(of: 2) {
        if values[key] == nil { keys.append(key) }
        values[key] = .integer(Int64(step))
        object[key] = .integer(Int64(step))
      } else {
        keys.removeAll { $0 == key }
        values[key] = nil
        object[key] = nil
      }
      #expect(object.keys == keys, "seed \(seed)")
      #expect(object.count == values.count, "seed \(seed)")
      for probe in 0..<40 {
        let key = "key \(probe)"
        guard object[key] == values[key] else {
          Issue.record("seed \(seed), step \(step), \(key)")
          return
        }
      }
    }
  }

  @Test("Many keys are read in reasonable time, and a late duplicate is found")
  func many() throws {
    let pairs = (0..<50_000).map { "\"k\($0)\":\($0)" }.joined(separator: ",")
    guard case .object(let object) = try JSONValue(parsing: "{\(pairs)}") else {
      Issue.record("not an object")
      return
    }
    #expect(object.count == 50_000)
    #expect(object["k49999"] == 49_999)
    #expect(throws: JSONError.self) { try JSONValue(parsing: "{\(pairs),\"k777\":1}") }
  }
}
