import Dispatch
import Foundation

/// Moving a model within the tree, and from one tree to another.
extension ModelObject {
  /// Takes the model out of every property and collection that holds it.
  public final func detach() {
    guard let record else { return }
    Holder.remove(self, from: record.parents.all.compactMap(Holder.init))
  }

  /// Whether the model is the root of a scope.
  ///
  /// Setting it to true makes the model the root of a scope of its own, as ``makeScopeRoot(name:ticker:isolation:)`` does,
  /// with the ticker of whoever observes the model or of the scope that it is in; otherwise, on the
  /// main actor, with that of the main actor. Where none of these is known that is a programming error:
  /// ``makeScopeRoot(name:ticker:isolation:)`` says which one. Setting it to false takes the model off
  /// its scope, whichever that is: see ``Scope/releaseRoot()``.
  public final var isScopeRoot: Bool {
    get { record.map { $0.scope?.isRoot($0) ?? false } ?? false }
    set {
      guard newValue != isScopeRoot else { return }
      if !newValue {
        scope?.releaseRoot()
        return
      }
      guard
        let ticker = ensureRecord().ticker
          ?? (MainQueue.isCurrent ? Ticker.on(MainActor.shared) : nil)
      else {
        preconditionFailure(
          "\(schema.wireName).isScopeRoot was set where no actor is known; use makeScopeRoot, on an "
            + "actor or with a ticker.")
      }
      makeScopeRoot(ticker: ticker, isolation: nil)
    }
  }

  /// Makes the model the root of a scope of its own, which lasts for as long as the model is there and
  /// is its root: the model holds the scope, not the other way around.
  ///
  /// Otherwise it is ``makeRoot(of:)``. A model that is a root already stays that.
  ///
  /// - Parameters:
  ///   - name: what the scope is called; the name of the class unless given.
  ///   - ticker: delivers to observers; the ticker of the caller's actor unless given.
  ///   - isolation: the caller's actor.
  /// - Returns: the scope whose root the model is now; nil if that was refused.
  @discardableResult
  public final func makeScopeRoot(
    name: String? = nil, ticker: Ticker? = nil, isolation: (any Actor)? = #isolation
  ) -> Scope? {
    if isScopeRoot { return scope }
    let made = Scope(name: name ?? schema.wireName, ticker: ticker, isolation: isolation)
    return move(to: made, isOwn: true) ? made : nil
  }

  /// Makes the model the root of `scope`, with all that it holds: it is taken out of every property
  /// and collection outside of its own tree that holds it, detached from the scope that it is in,
  /// and attached to the other one.
  ///
  /// Refused, with an error of `scope` and with nothing changed, if that scope has a root, if the
  /// model is the root of another one (see ``Scope/releaseRoot()``), or if something else in another
  /// scope holds a part of what the model holds. Cost: O(n) for the n models.
  ///
  /// - Returns: whether the model is the root of `scope` now.
  @discardableResult
  public final func makeRoot(of scope: Scope) -> Bool {
    if scope.root === self { return true }
    return move(to: scope, isOwn: false)
  }

  private final func move(to scope: Scope, isOwn: Bool) -> Bool {
    let record = ensureRecord()
    if scope.root != nil {
      scope.refuse(.rootIsSet(scope.name))
      return false
    }
    let (outside, error) = Structure.prepareMove(of: record, to: scope)
    if let error {
      scope.refuse(error)
      return false
    }
    if let own = record.scope, own.isRoot(record) { own.releaseRoot() }
    Holder.remove(self, from: outside)
    // What observers have done meanwhile may be in the way now.
    guard scope.root == nil else { return scope.root === self }
    scope.setRoot(self, isInitial: isOwn, isOwn: isOwn)
    return scope.root === self
  }
}

/// Tells whether the caller is on the main queue, where the main actor runs.
///
/// Where the main thread waits in `dispatchMain()`, the main queue is served by other threads, so that
/// the thread does not tell.
private enum MainQueue {
  private static let key: DispatchSpecificKey<Bool> = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
  }()

  static var isCurrent: Bool {
    let key = key
    return Thread.isMainThread || DispatchQueue.getSpecific(key: key) == true
  }
}

/// A property that holds a model. It keeps the parent, which observers might let go of otherwise while
/// the model is taken out of one property after the other.
private struct Holder {
  let parent: ModelObject
  let property: ModelSchema.Property

  init?(_ link: ParentLinks.Link) {
    guard let parent = link.parent.model else { return nil }
    self.parent = parent
    property = link.parent.schema.properties[link.index]
  }

  static func remove(_ model: ModelObject, from holders: [Holder]) {
    for holder in holders {
      let (parent, property) = (holder.parent, holder.property)
      if property.kind == .collection {
        property.access.edit(parent, at: property.offset) { list in
          if let position = list.index(of: model) { list.remove(at: position) }
        }
      } else if parent.child(of: property) === model {
        _ = property.access.assign(nil as ModelObject?, to: parent, at: property.offset)
      }
    }
  }
}

extension Structure {
  /// What holds `top` from outside of its own tree, and why the tree cannot go to `scope`, if so.
  /// Nothing is changed. Cost: O(n).
  fileprivate static func prepareMove(
    of top: ModelRecord, to scope: Scope
  ) -> (outside: [Holder], error: ScopeError?) {
    var tree: Set<ObjectIdentifier> = [ObjectIdentifier(top)]
    var records: ContiguousArray<ModelRecord> = [top]
    var next = 0
    while next < records.count {
      records[next].forEachChild { child, _ in
        let below = child.ensureRecord()
        if tree.insert(ObjectIdentifier(below)).inserted { records.append(below) }
      }
      next += 1
    }
    let outside = top.parents.all.filter { !tree.contains(ObjectIdentifier($0.parent)) }
      .compactMap(Holder.init)
    var uuids: Set<UUID> = []
    for record in records {
      if !uuids.insert(record.uuid).inserted {
        return (outside, .duplicateUUID(record.schema.wireName, record.uuid))
      }
      guard let other = record.scope else { continue }
      var stays = other.isRoot(record) && (record !== top || other.heldRoot != nil)
      if record !== top {
        record.parents.forEach { link in
          if link.parent.scope != nil, !tree.contains(ObjectIdentifier(link.parent)) {
            stays = true
          }
        }
      }
      if stays {
        return (
          outside,
          .modelInTwoScopes(record.schema.wireName, record.uuid, other.name, scope.name)
        )
      }
    }
    return (outside, nil)
  }
}
