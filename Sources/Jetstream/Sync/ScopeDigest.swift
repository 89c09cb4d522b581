import Foundation

/// Sums up what the others know of a scope, so that two replicas can be compared without sending them.
///
/// Every model counts with a hash of its canonical JSON. By their UUIDs the models are spread over 256
/// parts; the digest of a part is the sum of its hashes, and that of the scope the sum of its parts. So
/// the order in which models came does not count, and a change costs no more than what it changes.
///
/// What was changed here and is in no change set yet should not be there when the digest is asked for,
/// but for what a minimal sync interval holds back.
package final class ScopeDigest {
  /// What a scope comes to.
  package struct Total: Hashable {
    /// The sum over all models.
    package let digest: UInt64
    /// The same for two scopes whose models are of the same classes, with properties of the same types;
    /// the digests of others cannot be compared.
    package let schema: UInt64
  }

  private struct Entry {
    let hash: UInt64
    let schema: ModelSchema
  }

  private static let partCount = Ping.Difference.partCount

  private unowned let scope: Scope
  private var entries: [UUID: Entry] = [:]
  /// Models of which the entry, if there is one, may not be right.
  private var stale: Set<UUID>
  private var sums = [UInt64](repeating: 0, count: partCount)
  private var classes: [ObjectIdentifier: (count: Int, fingerprint: UInt64)] = [:]
  private var tokens: [ObservationToken] = []

  /// Begins to follow a scope, which has to outlive the digest.
  package init(_ scope: Scope) {
    self.scope = scope
    stale = Set(scope.models.lazy.map(\.uuid))
    scope.addMembershipObserver(self)
    tokens = [
      scope.onSealedChanges.listen { [weak self] in self?.note($0.set.fragments) },
      scope.onRemoteSync.listen { [weak self] in self?.note($0) },
    ]
  }

  deinit { for token in tokens { token.cancel() } }

  /// What the scope comes to; nil if it has something unknown in it, which cannot be compared, and while
  /// more models than `budget` have yet to be looked at: the next call goes on.
  ///
  /// Cost: O(values) of the models that have changed since the last call, and of all for the first time.
  package func total(budget: Int = 2_000) -> Total? {
    guard scope.unknown == nil else { return nil }
    var left = budget
    while left > 0, let uuid = stale.popFirst() {
      update(uuid)
      left -= 1
    }
    guard stale.isEmpty else { return nil }
    return Total(
      digest: sums.reduce(0, &+),
      schema: classes.values.reduce(0) { $0 &+ Self.mixed($1.fingerprint) })
  }

  /// The digests of the parts, as of the last ``total(budget:)``.
  package var parts: [UInt64] { sums }

  /// The models in the parts whose digests are not these, as they are now: the root as a change, others as
  /// additions. Cost: O(n) for n models in the scope.
  package func fragments(whereNot others: [UInt64]) -> [SyncFragment] {
    let models = entries.keys.filter { sums[Self.part(of: $0)] != others[Self.part(of: $0)] }
    return models.sorted { $0.wireText < $1.wireText }.compactMap { uuid in
      scope.record(of: uuid).map {
        $0.addFragment(scope.isRoot($0) ? .change : .add, withHeldBack: false)
      }
    }
  }

  /// Those of some models, given with all their values, that were not so as of the last ``total(budget:)``.
  package func differing(from fragments: [SyncFragment]) -> [UUID] {
    fragments.filter { entries[$0.uuid]?.hash != Self.hash(of: $0) }.map(\.uuid)
  }

  private func note(_ fragments: [SyncFragment]) {
    for fragment in fragments { stale.insert(fragment.uuid) }
  }

  private func update(_ uuid: UUID) {
    let part = Self.part(of: uuid)
    if let old = entries.removeValue(forKey: uuid) {
      sums[part] &-= old.hash
      let key = ObjectIdentifier(old.schema)
      classes[key]?.count -= 1
      if classes[key]?.count == 0 { classes[key] = nil }
    }
    // What only local properties hold is new to the others for as long as that lasts.
    guard let record = scope.record(of: uuid), !record.isNew else { return }
    let hash = Self.hash(of: record.addFragment(withHeldBack: false))
    entries[uuid] = Entry(hash: hash, schema: record.schema)
    sums[part] &+= hash
    let key = ObjectIdentifier(record.schema)
    classes[key, default: (0, record.schema.fingerprint.rawValue)].count += 1
  }

  private static func part(of uuid: UUID) -> Int {
    withUnsafeBytes(of: uuid.uuid) { bytes in
      // Folded, so that UUIDs that count up are spread as well.
      Int(bytes.reduce(UInt8(0)) { $0 &* 31 &+ $1 })
    }
  }

  /// FNV-1a over UUID, class name and canonical JSON, then mixed, since sums show what FNV leaves alike.
  private static func hash(of fragment: SyncFragment) -> UInt64 {
    var bytes: [UInt8] = []
    withUnsafeBytes(of: fragment.uuid.uuid) { bytes += $0 }
    bytes += fragment.className.utf8
    JSONValue.object(fragment.properties).writeCanonical(to: &bytes)
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
    return mixed(hash)
  }

  /// Lets every bit depend on every other: the last steps of SplitMix64.
  private static func mixed(_ value: UInt64) -> UInt64 {
    var value = value
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }
}

extension ScopeDigest: MembershipObserver {
  package func modelEntered(_ model: ModelObject) { stale.insert(model.uuid) }

  package func modelLeft(_ model: ModelObject) { stale.insert(model.uuid) }

  package func modelWithdrawn(_ model: ModelObject) { stale.insert(model.uuid) }

  package func modelShared(_ model: ModelObject) { stale.insert(model.uuid) }

  /// Whatever refers to it says another name, too.
  package func modelRenamed(_ model: ModelObject, from old: UUID) {
    stale.formUnion(entries.keys)
    stale.insert(model.uuid)
  }
}
