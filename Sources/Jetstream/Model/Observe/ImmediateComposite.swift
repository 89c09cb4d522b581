/// Observes the value of a computed property: runs its getter again after each write to a property
/// that it has read, and tracks the reads anew.
///
/// The model's observers own it. The signals that it listens to, and the models that they belong
/// to, do not.
final class ImmediateComposite: ObservationToken {
  /// Runs the getter of a model. Returns its reads and, if the value differs, the handler call to
  /// make.
  typealias Evaluation = (_ model: ModelObject, _ isMuted: Bool) -> (
    reads: [ReadTracker.Read], call: (() -> Void)?
  )

  private struct Dependency {
    let record: ModelRecord
    let properties: PropertySet
    let token: ObservationToken
  }

  var evaluate: Evaluation?
  private let record: ModelRecord
  private var dependencies: [Dependency] = []
  weak var holder: ObserverExtras?

  init(_ record: ModelRecord, observer: AnyObject?) {
    self.record = record
    super.init(observer: observer)
  }

  deinit { for dependency in dependencies { dependency.token.cancel() } }

  override func forgetHandler() {
    evaluate = nil
    stop()
  }

  override func leaveHolder() { holder?.dropDead() }

  /// Runs the getter, and calls the handler if the value differs.
  func update() {
    guard isLive, let model = record.model else { return cancel() }
    guard let (reads, call) = evaluate?(model, isMuted) else { return }
    follow(reads)
    call?()
  }

  private func follow(_ reads: [ReadTracker.Read]) {
    var places: [ObjectIdentifier: Int] = [:]
    var found: [(record: ModelRecord, properties: PropertySet)] = []
    for read in reads {
      let record = read.model.ensureRecord()
      let place = places[ObjectIdentifier(record)] ?? found.count
      if place == found.count {
        places[ObjectIdentifier(record)] = place
        found.append((record, PropertySet()))
      }
      found[place].properties.insert(read.index)
    }
    if found.elementsEqual(
      dependencies, by: { $0.record === $1.record && $0.properties == $1.properties })
    {
      return
    }
    stop()
    for (record, properties) in found {
      let names = record.schema.properties.filter { properties.contains($0.index) }.map(\.name)
      let token = ModelSignals(record).onPropertyChange.listen(
        filter: { names.contains($0.key) }, { [weak self] _ in self?.update() })
      dependencies.append(Dependency(record: record, properties: properties, token: token))
    }
  }

  /// Stops listening to all signals.
  private func stop() {
    let old = dependencies
    dependencies = []
    for dependency in old { dependency.token.cancel() }
  }
}
