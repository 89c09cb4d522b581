import Foundation

/// Digests of a scope's shared state, by which two replicas can be compared without sending them.
///
/// Every model contributes a hash of its canonical JSON. By their UUIDs, the models are spread over 256 parts; the
/// digest of a part is the sum of its hashes, and that of the scope the sum of its parts. So the order in which
/// models were added does not matter, and a change costs no more than rehashing the models that it changes.
///
/// There should be no unsealed local changes when the digest is computed, except for those that a minimal sync
/// interval holds back.
package final class ScopeDigest {
  /// The digest of a whole scope.
  package struct Total: Hashable {
    /// The sum of the hashes of all models.
    package let digest: UInt64
    /// A fingerprint of the models' classes and their property types. Digests of scopes with different fingerprints
    /// cannot be compared.
    package let schema: UInt64
  }

  private struct Entry {
    let hash: UInt64
    let schema: ModelSchema
  }

  private static let partCount = Ping.Difference.partCount

  private unowned let scope: Scope
  private var entries: [UUID: Entry] = [:]
  /// The models whose entries may be outdated or missing.
  private var stale: Set<UUID>
  private var sums = [UInt64](repeating: 0, count: partCount)
  private var classes: [ObjectIdentifier: (count: Int, fingerprint: UInt64)] = [:]
  private var tokens: [ObservationToken] = []

  /// Starts to follow a scope, which has to outlive the digest.
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

  /// Returns the digest of the scope. Returns nil if the scope contains unknown models or properties, which cannot
  /// be compared, and while more than `budget` models have yet to be hashed: the next call continues.
  ///
  /// Cost: O(values) of the models that have changed since the last call; the first call hashes all.
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

  /// Returns the models in the parts whose digests differ from the given ones, with their current values: the root
  /// as a change, others as additions. Cost: O(n) for n models in the scope.
  package func fragments(whereNot others: [UInt64]) -> [SyncFragment] {
    let models = entries.keys.filter { sums[Self.part(of: $0)] != others[Self.part(of: $0)] }
    return models.sorted { $0.wireText < $1.wireText }.compactMap { uuid in
      scope.record(of: uuid).map {
        $0.addFragment(scope.isRoot($0) ? .change : .add, withHeldBack: false)
      }
    }
  }

  /// Returns the models, out of those given with all their values, that had other values at the last
  /// ``total(budget:)``.
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
    // A model that only local properties hold is not shared, as long as that lasts.
    guard let record = scope.record(of: uuid), !record.isNew else { return }
    let hash = Self.hash(of: record.addFragment(withHeldBack: false))
    entries[uuid] = Entry(hash: hash, schema: record.schema)
    sums[part] &+= hash
    let key = ObjectIdentifier(record.schema)
    classes[key, default: (0, record.schema.fingerprint.rawValue)].count += 1
  }

  private static func part(of uuid: UUID) -> Int {
    withUnsafeBytes(of: uuid.uuid) { bytes in
      // Folded, so that consecutive UUIDs are spread as well.
      Int(bytes.reduce(UInt8(0)) { $0 &* 31 &+ $1 })
    }
  }

  /// Hashes UUID, class name and canonical JSON by FNV-1a, then mixes the result, because a sum would show the
  /// regularities that FNV leaves.
  private static func hash(of fragment: SyncFragment) -> UInt64 {
    var bytes: [UInt8] = []
    withUnsafeBytes(of: fragment.uuid.uuid) { bytes += $0 }
    bytes += fragment.className.utf8
    JSONValue.object(fragment.properties).writeCanonical(to: &bytes)
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
    return mixed(hash)
  }

  /// Makes every bit depend on every other: the last steps of SplitMix64.
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

  /// Marks all models as outdated, because any of them may refer to the renamed one.
  package func modelRenamed(_ model: ModelObject, from old: UUID) {
    stale.formUnion(entries.keys)
    stale.insert(model.uuid)
  }
}
