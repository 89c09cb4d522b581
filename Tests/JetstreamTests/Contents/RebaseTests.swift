import Foundation
import Testing

@testable import Jetstream

/// Clients that keep their pending operations in front of what the server has confirmed agree with it in the end.
@Suite("Operations that are pending while others come in", .paced)
struct RebaseTests {
  @Test("one against one, and two against one, for all small collections", arguments: 0...3)
  func smallCollections(kind: Int) {
    let cases = CollectionCases(3)
    #expect(
      RebaseCase.failures(cases.all(upTo: 3), cases.operations(anchors: 1), kind: kind) == [])
  }

  @Test("one against one, and two against one, for a small counter at its bounds", arguments: 0...3)
  func smallCounters(kind: Int) throws {
    let contents = try [-128, -127, 0, 126, 127].map(counter)
    let operations = [-300, -2, -1, 0, 1, 2, 300].map { PropertyOperation.add($0) }
    #expect(RebaseCase.failures(contents, operations, kind: kind) == [])
  }

  @Test("one against one, and two against one, for all small dictionaries", arguments: 0...3)
  func smallDictionaries(kind: Int) {
    let cases = DictionaryCases(["a", "b"], models: 3)
    #expect(RebaseCase.failures(cases.all, cases.edits, kind: kind) == [])
  }

  @Test("three against three on one entry, in every order, with every rejection", arguments: 0..<3)
  func threeOnOneEntry(first: Int) {
    let cases = DictionaryCases(["a"], models: 2)
    #expect(RebaseCase.threeAgainstThree(cases.all, cases.edits, first: first) == [])
  }

  @Test(
    "three against three on two models of a collection, in every order, with every rejection",
    arguments: 0..<4)
  func threeOnTwoModels(first: Int) {
    let cases = CollectionCases(2)
    let (a, b) = (cases.models[0], cases.models[1])
    #expect(
      RebaseCase.threeAgainstThree(
        [CollectionContent([a, b]), CollectionContent([b])],
        [.insert(a, .start), .remove(a), .move(b, .end), .insert(b, .after([a]))], first: first)
        == [])
  }

  @Test("three against three on a counter, in every order, with every rejection", arguments: 0..<3)
  func threeOnCounter(first: Int) throws {
    #expect(
      RebaseCase.threeAgainstThree(
        try [126, 0].map(counter), [.add(1), .add(-2), .add(300)], first: first) == [])
  }

  @Test("up to three against three, in every order, some atomic, some rejected", arguments: 1...40)
  func random(seed: Int) {
    let collections = CollectionCases(6)
    #expect(
      RebaseCase.failures(
        seed: seed, content: { collections.content(&$0) },
        operation: { collections.operation(&$0) }) == [])
    let dictionaries = DictionaryCases(["", "a", "b", "c"], models: 4)
    #expect(
      RebaseCase.failures(
        seed: seed, content: { dictionaries.content(&$0) }, operation: { dictionaries.edit(&$0) })
        == [])
  }

  @Test("up to three against three additions to a counter", arguments: 1...20)
  func randomCounters(seed: Int) throws {
    let contents = try (-128...127).map(counter)
    #expect(
      RebaseCase.failures(
        seed: seed, content: { contents.randomElement(using: &$0)! },
        operation: { .add(Int64.random(in: -300...300, using: &$0)) }) == [])
  }

  private func counter(_ number: Int64) throws -> CounterContent {
    let range = try #require(CounterRange(Int8.self))
    return try #require(CounterContent(.integer(number), within: range))
  }
}
