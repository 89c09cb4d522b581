import Foundation
import Jetstream

/// The rules of one scope, found for each of its classes.
final class RuleBook {
  let rules: ScopeRules
  private var classes: [ObjectIdentifier: ClassRules] = [:]
  /// The class that was asked for last: mostly a change set is about one. Not open while other code runs.
  @exclusivity(unchecked) private var last: ClassRules?

  init(_ rules: ScopeRules) { self.rules = rules }

  /// The rules that decide about models of one class. Objects and not values: none of the arrays is to be copied for each
  /// difference.
  private final class ClassRules {
    /// The rules for one property; nil where none speaks of it.
    final class Property {
      var insert, remove, move: [ScopeRules.Rule]?
      /// The rules for the property, or for all properties.
      var update: [ScopeRules.Rule]?
    }

    /// Kept for as long as it is a key.
    let schema: ClassSchema
    var create, delete: [ScopeRules.Rule]?
    var properties: [Property] = []

    init(_ schema: ClassSchema) { self.schema = schema }
  }

  /// Returns the error with which a difference is denied; nil if it is permitted.
  func objection(to difference: Difference, asking question: inout ScopeRules.Question)
    -> WireError?
  {
    let model = difference.model
    let rules = rules(for: model.schema)
    question.ask(about: model)
    switch difference.kind {
    case .created: return decide(rules.create, question) { "create a \(model.schema.wireName)" }
    case .deleted: return decide(rules.delete, question) { "delete a \(model.schema.wireName)" }
    case .updated(let property):
      return objection(toUpdateOf: property.index, in: model, asking: &question)
    case .inserted(let child, let property):
      question.ask(about: model, child)
      let own = rules.properties[property.index]
      return decide(own.insert ?? own.update, question) {
        "insert into '\(property.wireName)' of a \(model.schema.wireName)"
      }
    case .removed(let child, let property):
      question.ask(about: model, child)
      let own = rules.properties[property.index]
      return decide(own.remove ?? own.update, question) {
        "remove from '\(property.wireName)' of a \(model.schema.wireName)"
      }
    case .moved(let child, let property):
      question.ask(about: model, child)
      let own = rules.properties[property.index]
      return decide(own.move ?? own.update, question) {
        "move in '\(property.wireName)' of a \(model.schema.wireName)"
      }
    }
  }

  /// Returns the error with which an update of the property at an index of a model's class is denied; nil if it is
  /// permitted.
  func objection(
    toUpdateOf index: Int, in model: TentativeModel, asking question: inout ScopeRules.Question
  ) -> WireError? {
    question.ask(about: model)
    return decide(rules(for: model.schema).properties[index].update, question) {
      "change '\(model.schema.properties[index].wireName)' of a \(model.schema.wireName)"
    }
  }

  private func decide(
    _ deciding: [ScopeRules.Rule]?, _ question: ScopeRules.Question, _ action: () -> String
  ) -> WireError? {
    guard let deciding else {
      return rules.otherwise == .allow ? nil : .notPermitted(to: action())
    }
    for rule in deciding {
      do {
        guard try rule.isPermitted(question) else { return .rejected(rule.reason) }
      } catch let error as WireError {
        return error
      } catch {
        question.scope.misreading = question.scope.misreading ?? "a rule has thrown \(error)"
      }
      if question.scope.misreading != nil { return .notJudged }
    }
    return nil
  }

  private func rules(for schema: ClassSchema) -> ClassRules {
    if let last, last.schema === schema { return last }
    let found = classes[ObjectIdentifier(schema)] ?? makeRules(for: schema)
    last = found
    return found
  }

  private func makeRules(for schema: ClassSchema) -> ClassRules {
    let result = ClassRules(schema)
    let names = Set(schema.properties.map(\.wireName))
    result.create = nearest(.create, schema, nil)
    result.delete = nearest(.delete, schema, nil)
    for property in schema.properties {
      let name = property.wireName
      let own = ClassRules.Property()
      own.update = update(of: name, schema, names)
      own.insert = rules(for: .insert, on: name, of: schema, names, besides: own.update)
      own.remove = rules(for: .remove, on: name, of: schema, names, besides: own.update)
      own.move = rules(for: .move, on: name, of: schema, names, besides: own.update)
      result.properties.append(own)
    }
    classes[ObjectIdentifier(schema)] = result
    return result
  }

  private func chain(_ schema: ClassSchema) -> [String] {
    [schema.wireName] + schema.superclasses + [ClassSchema.root]
  }

  /// Returns the rules for an operation on models, or on a collection of theirs: those of the nearest class that has some.
  private func nearest(
    _ operation: ScopeRules.Operation, _ schema: ClassSchema, _ property: String?
  ) -> [ScopeRules.Rule]? {
    chain(schema).lazy.compactMap { [rules] name in
      rules.rules[.init(operation: operation, className: name, property: property)]
    }.first
  }

  /// Returns the rules for an operation on a collection. Those for collections that may have got another name deny, and
  /// permit nothing that would be denied without them.
  private func rules(
    for operation: ScopeRules.Operation, on collection: String, of schema: ClassSchema,
    _ names: Set<String>, besides update: [ScopeRules.Rule]?
  ) -> [ScopeRules.Rule]? {
    if let own = nearest(operation, schema, collection) { return own }
    if update == nil, rules.otherwise == .deny { return nil }
    // Only a class below can have given the collection another name.
    for name in chain(schema).dropFirst() {
      if let lost = lost(operation, name, names) { return lost + (update ?? []) }
    }
    return nil
  }

  /// Returns the rules for an update of a property: those for it in the nearest class, or those for all of its properties.
  private func update(
    of property: String, _ schema: ClassSchema, _ names: Set<String>
  ) -> [ScopeRules.Rule]? {
    for name in chain(schema) {
      let own = rules.rules[.init(operation: .update, className: name, property: property)]
      let general = rules.rules[.init(operation: .update, className: name, property: nil)]
      if let found = own ?? general ?? lost(.update, name, names) { return found }
    }
    return nil
  }

  /// Returns the rules of a class for properties with other names than `names`; nil if there are none.
  ///
  /// A class can give an inherited property another name on the wire. The rules of the class above it would not find it, and
  /// so all of them count for each property of which no rule speaks by its name.
  private func lost(
    _ operation: ScopeRules.Operation, _ className: String, _ names: Set<String>
  ) -> [ScopeRules.Rule]? {
    let found = rules.rules.filter { key, _ in
      key.operation == operation && key.className == className
        && key.property.map { !names.contains($0) } ?? false
    }
    return found.isEmpty ? nil : found.values.flatMap(\.self)
  }
}

extension WireError {
  /// No rule lets the client do something.
  static func notPermitted(to action: String) -> WireError {
    WireError(message: "You may not \(action)", type: "not-permitted")
  }

  /// A rule could not be asked; the server's diagnostics tell the reason.
  static let notJudged = WireError(
    message: "The server could not judge the change", type: "not-judged")
}
