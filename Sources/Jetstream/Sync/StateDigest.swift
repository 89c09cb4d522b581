import Foundation

/// Digests of a shared state, by which two replicas can be compared without sending them.
///
/// Every model contributes a hash of its canonical JSON. By their UUIDs, the models are spread over 256 parts; the
/// digest of a part is the sum of its hashes, and that of the state the sum of its parts. So the order in which
/// models were added does not matter, and a change costs no more than rehashing the models that it changes.
package final class StateDigest {
  /// The digest of a whole state.
  package struct Total: Hashable {
    /// The sum of the hashes of all models.
    package let digest: UInt64
    /// A fingerprint of the models' classes and their property types. Digests of states with different fingerprints
    /// cannot be compared.
    package let schema: UInt64
  }

  /// A shared model as others are to know it.
  package struct Model {
    let fragment: SyncFragment
    let schema: ClassSchema

    /// - Parameter fragment: The model with all values: the root as a change, others as additions.
    package init(_ fragment: SyncFragment, _ schema: ClassSchema) {
      (self.fragment, self.schema) = (fragment, schema)
    }
  }

  private struct Entry {
    let hash: UInt64
    let schema: ClassSchema
  }

  private static let partCount = Ping.Difference.partCount

  private let read: (UUID) -> Model?
  private var entries: [UUID: Entry] = [:]
  /// The models whose entries may be outdated or missing.
  private var stale: Set<UUID>
  private var sums = [UInt64](repeating: 0, count: partCount)
  private var classes: [ObjectIdentifier: (count: Int, fingerprint: UInt64)] = [:]

  /// Makes the digest of some models. `read` returns a model, or nil if it is not shared.
  package init(of models: some Sequence<UUID>, read: @escaping (UUID) -> Model?) {
    stale = Set(models)
    self.read = read
  }

  /// Notes that a model may have come, gone or changed.
  package func note(_ uuid: UUID) { stale.insert(uuid) }

  /// Notes that any model may have changed.
  package func noteAll() { stale.formUnion(entries.keys) }

  /// Returns the digest of all models. Returns nil while more than `budget` models have yet to be hashed: the next call
  /// continues.
  ///
  /// Cost: O(values) of the models that have changed since the last call; the first call hashes all.
  package func total(budget: Int = 2_000) -> Total? {
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
  /// as a change, others as additions. Cost: O(n) for n models.
  package func fragments(whereNot others: [UInt64]) -> [SyncFragment] {
    let models = entries.keys.filter { sums[Self.part(of: $0)] != others[Self.part(of: $0)] }
    return models.sorted { $0.wireText < $1.wireText }.compactMap { read($0)?.fragment }
  }

  /// Returns the models, out of those given with all their values, that had other values at the last
  /// ``total(budget:)``.
  package func differing(from fragments: [SyncFragment]) -> [UUID] {
    fragments.filter { entries[$0.uuid]?.hash != Self.hash(of: $0) }.map(\.uuid)
  }

  private func update(_ uuid: UUID) {
    let part = Self.part(of: uuid)
    if let old = entries.removeValue(forKey: uuid) {
      sums[part] &-= old.hash
      let key = ObjectIdentifier(old.schema)
      classes[key]?.count -= 1
      if classes[key]?.count == 0 { classes[key] = nil }
    }
    guard let model = read(uuid) else { return }
    let hash = Self.hash(of: model.fragment)
    entries[uuid] = Entry(hash: hash, schema: model.schema)
    sums[part] &+= hash
    let key = ObjectIdentifier(model.schema)
    classes[key, default: (0, model.schema.fingerprint.rawValue)].count += 1
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
