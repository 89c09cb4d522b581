import Foundation
import Jetstream

/// The rules of one scope, found for each of its classes.
final class RuleBook {
  let rules: ScopeRules
  private var classes: [ObjectIdentifier: ClassRules] = [:]

  init(_ rules: ScopeRules) { self.rules = rules }

  /// The rules that decide about models of one class.
  private struct ClassRules {
    /// The rules for one property; nil where none speaks of it.
    struct Property {
      var insert, remove, move: [ScopeRules.Rule]?
      /// The rules for the property, or for all properties.
      var update: [ScopeRules.Rule]?
    }

    /// Kept for as long as it is a key.
    let schema: ClassSchema
    var create, delete: [ScopeRules.Rule]?
    var properties: [Property] = []
  }

  /// Returns the error with which a difference is denied; nil if it is permitted.
  func objection(
    to difference: Difference, by session: SessionInfo, in scope: TentativeScope
  ) -> WireError? {
    let rules = rules(for: difference.model.schema)
    switch difference.kind {
    case .created:
      return decide(rules.create, difference, nil, session, scope) {
        "create a \(difference.model.schema.wireName)"
      }
    case .deleted:
      return decide(rules.delete, difference, nil, session, scope) {
        "delete a \(difference.model.schema.wireName)"
      }
    case .updated(let property):
      let own = rules.properties[property.index]
      return decide(own.update, difference, nil, session, scope) {
        "change '\(property.wireName)' of a \(difference.model.schema.wireName)"
      }
    case .inserted(let child, let property):
      let own = rules.properties[property.index]
      return decide(own.insert ?? own.update, difference, child, session, scope) {
        "insert into '\(property.wireName)' of a \(difference.model.schema.wireName)"
      }
    case .removed(let child, let property):
      let own = rules.properties[property.index]
      return decide(own.remove ?? own.update, difference, child, session, scope) {
        "remove from '\(property.wireName)' of a \(difference.model.schema.wireName)"
      }
    case .moved(let child, let property):
      let own = rules.properties[property.index]
      return decide(own.move ?? own.update, difference, child, session, scope) {
        "move in '\(property.wireName)' of a \(difference.model.schema.wireName)"
      }
    }
  }

  private func decide(
    _ deciding: [ScopeRules.Rule]?, _ difference: Difference, _ child: TentativeModel?,
    _ session: SessionInfo, _ scope: TentativeScope, _ action: () -> String
  ) -> WireError? {
    guard let deciding else {
      return rules.otherwise == .allow ? nil : .notPermitted(to: action())
    }
    let question = ScopeRules.Question(
      session: session, scope: scope, model: difference.model, child: child)
    for rule in deciding {
      do {
        guard try rule.isPermitted(question) else { return .rejected(rule.reason) }
      } catch let error as WireError {
        return error
      } catch {
        scope.misreading = scope.misreading ?? "a rule has thrown \(error)"
      }
      if scope.misreading != nil { return .notJudged }
    }
    return nil
  }

  private func rules(for schema: ClassSchema) -> ClassRules {
    if let known = classes[ObjectIdentifier(schema)] { return known }
    var result = ClassRules(schema: schema)
    result.create = nearest(.create, schema, nil)
    result.delete = nearest(.delete, schema, nil)
    let names = schema.properties.map(\.wireName)
    for property in schema.properties {
      let name = property.wireName
      result.properties.append(
        ClassRules.Property(
          insert: nearest(.insert, schema, name), remove: nearest(.remove, schema, name),
          move: nearest(.move, schema, name), update: update(of: name, schema, names)))
    }
    classes[ObjectIdentifier(schema)] = result
    return result
  }

  private func chain(_ schema: ClassSchema) -> [String] {
    [schema.wireName] + schema.superclasses + [ClassSchema.root]
  }

  private func nearest(
    _ operation: ScopeRules.Operation, _ schema: ClassSchema, _ property: String?
  ) -> [ScopeRules.Rule]? {
    chain(schema).lazy.compactMap { [rules] name in
      rules.rules[.init(operation: operation, className: name, property: property)]
    }.first
  }

  /// Returns the rules for an update of a property: those for it in the nearest class, or those for all of its properties.
  ///
  /// A class can give an inherited property another name on the wire. The rules of the class above it would not find it, and
  /// so all of them count for each property of which no rule speaks by its name.
  private func update(
    of property: String, _ schema: ClassSchema, _ names: [String]
  ) -> [ScopeRules.Rule]? {
    for name in chain(schema) {
      let own = rules.rules[.init(operation: .update, className: name, property: property)]
      let general = rules.rules[.init(operation: .update, className: name, property: nil)]
      if let found = own ?? general { return found }
      let lost = rules.rules.filter { key, _ in
        key.operation == .update && key.className == name
          && key.property.map { !names.contains($0) } ?? false
      }
      if !lost.isEmpty { return lost.values.flatMap(\.self) }
    }
    return nil
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
