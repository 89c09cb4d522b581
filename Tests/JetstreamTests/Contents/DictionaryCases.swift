import Foundation

@testable import Jetstream

/// Dictionaries and edits of a few keys and models, all of them or some by chance.
struct DictionaryCases {
  let keys: [String]
  let models: [UUID]

  init(_ keys: [String], models count: Int) {
    self.keys = keys
    models = CollectionCases(count).models
  }

  /// Every dictionary of the models under the keys.
  var all: [DictionaryContent] {
    keys.reduce([DictionaryContent()]) { result, key in
      result.flatMap { content in
        ([nil] + models).map { model in
          var content = content
          content[key] = model
          return content
        }
      }
    }
  }

  /// Every edit that assigns at least one of the keys.
  var edits: [DictionaryEdit] {
    let all = keys.reduce([DictionaryEdit()]) { result, key in
      result.flatMap { edit in
        [edit] + ([nil] + models).map { edit.followed(by: DictionaryEdit([key: $0])) }
      }
    }
    return all.filter { !$0.isEmpty }
  }

  func content(_ generator: inout SeededGenerator) -> DictionaryContent {
    var result = DictionaryContent()
    for key in keys where Bool.random(using: &generator) {
      result[key] = models.randomElement(using: &generator)!
    }
    return result
  }

  func edit(_ generator: inout SeededGenerator) -> DictionaryEdit {
    var result = DictionaryEdit()
    for _ in 0..<Int.random(in: 1...3, using: &generator) {
      let isRemoval = Int.random(in: 0..<3, using: &generator) == 0
      result[keys.randomElement(using: &generator)!] = .some(
        isRemoval ? nil : models.randomElement(using: &generator)!)
    }
    return result
  }

  /// Applies an edit to a list of pairs: the last pair with a key is its entry.
  static func reference(_ pairs: [Pair], _ edit: DictionaryEdit) -> [Pair] {
    edit.assignments.reduce(pairs) { pairs, assignment in
      pairs.filter { $0.key != assignment.key }
        + (assignment.value.map { [Pair(key: assignment.key, model: $0)] } ?? [])
    }
  }

  struct Pair: Hashable {
    let key: String
    let model: UUID
  }
}

extension DictionaryContent {
  func after(_ edits: DictionaryEdit...) -> DictionaryContent { after(edits) }

  func after(_ edits: [DictionaryEdit]) -> DictionaryContent {
    var result = self
    for edit in edits { result.apply(edit) }
    return result
  }

  var pairs: [DictionaryCases.Pair] {
    entries.map { DictionaryCases.Pair(key: $0.key, model: $0.model) }
  }

  /// Describes where the content is not that of a list of pairs; nil if it is nowhere.
  func difference(from pairs: [DictionaryCases.Pair]) -> String? {
    let sorted = pairs.sorted { Array($0.key.utf8).lexicographicallyPrecedes(Array($1.key.utf8)) }
    if self.pairs != sorted { return "it has \(self.pairs)" }
    if count != pairs.count || isEmpty != pairs.isEmpty { return "it counts \(count)" }
    for pair in pairs where self[pair.key] != pair.model { return "it does not find \(pair)" }
    for model in CollectionCases(9).models {
      let keys = sorted.filter { $0.model == model }.map(\.key)
      if self.keys(of: model) != keys || holds(model) == keys.isEmpty {
        return "it does not find \(model)"
      }
    }
    return nil
  }

  /// The content without one of its entries, for each of them.
  var smaller: [DictionaryContent] {
    entries.map { after(DictionaryEdit([$0.key: nil])) }
  }
}

extension DictionaryEdit {
  /// The edit without one of its assignments, for each of them; an edit assigns something.
  var smaller: [DictionaryEdit] {
    assignments.count < 2
      ? []
      : assignments.keys.sorted().map { key in
        DictionaryEdit(assignments.filter { $0.key != key })
      }
  }
}
