import Foundation
import Testing

@testable import Jetstream

/// The algebra of edits of dictionaries: every small case, and larger ones by chance, which are shrunk if they fail.
@Suite("Contents of dictionaries", .paced)
struct DictionaryContentTests {
  private let few = DictionaryCases(["a", "b"], models: 3)
  private let many = DictionaryCases(
    ["", "a", "b", "ab", "a/b", "Z", "\u{e9}", "\u{ff61}", "\u{1f600}"], models: 5)

  /// So many entries that their models are looked up by their hashes.
  private let most = DictionaryCases((0..<40).map { "\($0)" }, models: 9)

  @Test("an edit does what a naive reference does, and taking it back leaves nothing")
  func applyAndInverse() {
    for content in few.all {
      for edit in few.edits {
        let after = content.after(edit)
        let reference = DictionaryCases.reference(content.pairs, edit)
        #expect(after.difference(from: reference) == nil, "\(edit) on \(content)")
        let back = content.inverse(of: edit)
        #expect(after.after(back) == content, "\(edit) on \(content)")
      }
    }
  }

  @Test("two edits composed do what they do one after the other")
  func composed() {
    for content in few.all {
      for first in few.edits {
        for second in few.edits
        where content.after(first.followed(by: second)) != content.after(first, second) {
          Issue.record("\(first), then \(second) on \(content)")
        }
      }
    }
  }

  @Test("the edit to another content leads there, and assigns no key that is the same in both")
  func differences() {
    for content in few.all {
      for other in few.all {
        let edit = content.edit(to: other)
        #expect(content.after(edit) == other)
        #expect(
          Set(edit.assignments.keys) == Set(few.keys.filter { content[$0] != other[$0] }),
          "\(content) to \(other)")
      }
    }
  }

  @Test("a remote edit beneath a pending one shows its other keys, and taking back leads to it")
  func beneath() {
    for content in few.all {
      for pending in few.edits {
        let shown = content.after(pending)
        let back = content.inverse(of: pending)
        for remote in few.edits {
          let anew = content.after(remote, pending)
          let now = shown.after(remote.behind(pending))
          let backNow = back.rebased(onto: remote)
          if now == anew, now.after(backNow) == content.after(remote),
            backNow == content.after(remote).inverse(of: pending)
          {
            continue
          }
          Issue.record("\(remote) beneath \(pending) on \(content)")
        }
      }
    }
  }

  @Test("long sequences are composed and taken back", arguments: [UInt64](1...40))
  func random(seed: UInt64) {
    typealias Input = (content: DictionaryContent, edits: [DictionaryEdit])
    var generator = SeededGenerator(seed: seed)
    func fails(_ input: Input) -> Bool {
      var content = input.content
      var back: [DictionaryEdit] = []
      var composed = DictionaryEdit()
      var reference = content.pairs
      for edit in input.edits {
        back.insert(content.inverse(of: edit), at: 0)
        content.apply(edit)
        composed = composed.followed(by: edit)
        reference = DictionaryCases.reference(reference, edit)
        if content.difference(from: reference) != nil { return true }
      }
      return content.difference(from: reference) != nil || content.after(back) != input.content
        || input.content.after(composed) != content
        || input.content.after(input.content.edit(to: content)) != content
        || content.after(content.edit(to: input.content)) != input.content
        || content.after(input.content.inverse(of: composed)) != input.content
        || DictionaryContent(content.json) != content
    }
    for round in 0..<100 {
      let cases = round % 4 == 0 ? most : many
      let count = Int.random(in: 0...12, using: &generator)
      let input = (cases.content(&generator), (0..<count).map { _ in cases.edit(&generator) })
      guard fails(input) else { continue }
      let least = minimal(
        input,
        smaller: { input in
          withoutOne(input.edits).map { (input.content, $0) }
            + input.content.smaller.map { ($0, input.edits) }
            + input.edits.indices.flatMap { at in
              input.edits[at].smaller.map { edit in
                var edits = input.edits
                edits[at] = edit
                return (input.content, edits)
              }
            }
        }, fails: fails)
      Issue.record("seed \(seed): \(least)")
    }
  }

  @Test("entries are in the order of the bytes of their keys")
  func order() {
    var content = DictionaryContent()
    for key in many.keys.shuffled() { content[key] = many.models[0] }
    let keys = ["", "Z", "a", "a/b", "ab", "b", "\u{e9}", "\u{ff61}", "\u{1f600}"]
    #expect(content.entries.map(\.key) == keys)
    #expect(content.keys(of: many.models[0]) == keys)
    #expect(DictionaryContent(["a": 1]) == nil && DictionaryContent([]) == nil)
  }
}
