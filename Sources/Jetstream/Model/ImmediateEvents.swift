/// The events of one change for immediate observers.
///
/// They are delivered in this order: refusals, the Observation module, property observers, collection observers step
/// by step, and the observers of the models that were added to the tree or taken out of it. The observers are those at the
/// time of the change: one that is added meanwhile may have seen what the change has made.
struct ImmediateEvents {
  /// The record of the changed model; nil for a change of the tree alone.
  private let record: ModelRecord?
  private let index: Int
  /// Errors, the first one last.
  private var refused: [ScopeError] = []
  private var bridge: ObservationBridge?
  private var property: (audience: Signal<PropertyChange>.Audience, change: PropertyChange)?
  private var steps: [ListOperation] = []
  private var stepAudience: Signal<CollectionChange>.Audience?
  private var nextStep = 0
  private var structure = StructureEvents()

  /// Makes the events of a change of the property `index`. Events are added afterwards.
  init(of record: ModelRecord, _ index: Int) { (self.record, self.index) = (record, index) }

  /// Makes the events of a change of the tree.
  init(_ structure: StructureEvents) { (record, index, self.structure) = (nil, 0, structure) }

  /// True if nothing is to be delivered.
  var isEmpty: Bool {
    refused.isEmpty && bridge == nil && property == nil && steps.isEmpty && structure.isEmpty
  }

  mutating func add(_ refused: [ScopeError]) { self.refused = refused.reversed() }

  /// Adds a change of the value, for the Observation module and for property observers.
  mutating func add(_ change: () -> PropertyChange?) {
    guard let observers = record?.observers else { return }
    bridge = observers.bridge
    if let signal = observers.propertyChange, signal.hasListeners, let change = change() {
      property = (signal.audience, change)
    }
  }

  /// Adds the steps of a change of a collection.
  mutating func add(_ steps: [ListOperation]) {
    guard let signal = record?.observers?.collectionChange, signal.hasListeners else { return }
    self.steps = steps
    stepAudience = signal.audience
  }

  mutating func add(_ structure: StructureEvents) { self.structure = structure }

  /// Delivers a single event that has one observer. Returns false, with nothing delivered, if there is more.
  func deliverAlone() -> Bool {
    guard refused.isEmpty, steps.isEmpty, structure.isEmpty else { return false }
    if let property {
      let signal = property.audience.signal
      guard bridge == nil, signal.hasOneListener else { return false }
      signal.fire(property.change)
    } else {
      bridge?.didChange(index)
    }
    return true
  }

  /// Takes the next event. Returns nil if there is none.
  mutating func next() -> ImmediateCalls? {
    if let error = refused.popLast() { return .refusal(error, record?.tree) }
    if let bridge {
      self.bridge = nil
      return .bridge(bridge, index)
    }
    if let property {
      self.property = nil
      return .calls(property.audience.calls(with: property.change))
    }
    if nextStep < steps.count, let stepAudience, stepAudience.signal.hasListeners,
      let name = record?.schema.properties[index].name
    {
      nextStep += 1
      return .calls(stepAudience.calls(with: CollectionChange(name, steps[nextStep - 1])))
    }
    return structure.next().map { .calls($0) }
  }
}

/// The calls of one event.
enum ImmediateCalls {
  case refusal(ScopeError, ModelTree?)
  case bridge(ObservationBridge, Int)
  case calls(any PendingCalls)
}
