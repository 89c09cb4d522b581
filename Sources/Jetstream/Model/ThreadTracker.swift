import CJetstream

/// The receiver of property accesses on the calling thread, while there is one.
///
/// A thread's tracker is stored in a thread-local pointer of the C target. The gate tells readers
/// whether any thread has a tracker.
final class ThreadTracker {
  enum Kind {
    /// A prototype is being made for a schema.
    case recorder(PropertyRecorder)
    /// The properties that a getter reads are being collected.
    case reads(ReadTracker)
    /// Models are being deallocated.
    case teardown(Teardown)
  }

  private let kind: Kind

  private init(_ kind: Kind) { self.kind = kind }

  /// Runs `body` with `kind` as the calling thread's tracker, then restores the previous tracker.
  ///
  /// Safe because `body` cannot suspend: the pointer is set and reset on one thread, and this frame
  /// keeps the tracker alive for as long as the pointer leads to it.
  static func run<Result>(_ kind: Kind, _ body: () throws -> Result) rethrows -> Result {
    let tracker = ThreadTracker(kind)
    let previous = jetstream_tracker()
    jetstream_set_tracker(Unmanaged.passUnretained(tracker).toOpaque())
    // A teardown is looked up without the gate.
    let gate: Int32 = if case .teardown = kind { 0 } else { 1 }
    jetstream_gate_add(gate)
    defer {
      jetstream_gate_add(-gate)
      jetstream_set_tracker(previous)
    }
    return try withExtendedLifetime(tracker, body)
  }

  /// The calling thread's tracker; nil if there is none.
  static var current: Kind? {
    jetstream_tracker().map {
      Unmanaged<ThreadTracker>.fromOpaque($0).takeUnretainedValue().kind
    }
  }
}

/// Collects the properties that are read, each with its model.
final class ReadTracker {
  struct Read: Hashable {
    let model: ModelObject
    let index: Int
  }

  private static let searched = 8

  private(set) var reads: [Read] = []
  private var known: Set<Read> = []
  private let willRead: ((ModelObject, Int) -> Void)?

  private init(_ willRead: ((ModelObject, Int) -> Void)?) { self.willRead = willRead }

  /// True if something is done before each read.
  fileprivate var isPreparing: Bool { willRead != nil }

  func note(_ model: ModelObject, index: Int) {
    willRead?(model, index)
    let read = Read(model: model, index: index)
    // Most code reads few properties, and searching few is faster than hashing.
    if reads.count < Self.searched {
      if !reads.contains(read) { reads.append(read) }
      return
    }
    if known.isEmpty { known = Set(reads) }
    if known.insert(read).inserted { reads.append(read) }
  }

  /// Runs `body` and returns its result and the properties that it read.
  ///
  /// - Parameter willRead: Called with the model and the index before the value of a property is read. It may release no
  ///   object that `body` can have; see ``ModelObject/propertyIsRead(at:)``. Without one, that of the tracker in which this
  ///   is called goes on being called.
  static func track<Result>(
    _ body: () -> Result, before willRead: ((ModelObject, Int) -> Void)? = nil
  ) -> (result: Result, reads: [Read]) {
    var willRead = willRead
    if willRead == nil, case .reads(let outer) = ThreadTracker.current {
      willRead = outer.willRead
    }
    let tracker = ReadTracker(willRead)
    let result = ThreadTracker.run(.reads(tracker), body)
    return (result, tracker.reads)
  }
}

extension ModelObject {
  /// Reports reads of all properties that hold models, where something is done before each read. Called before the models
  /// above or below this one are looked for without reading a property.
  final func relativesAreRead() {
    guard jetstream_gate() != 0, case .reads(let tracker) = ThreadTracker.current,
      tracker.isPreparing
    else { return }
    for property in schema.childProperties { tracker.note(self, index: property.index) }
  }
}

/// Releases the models below a deallocated one in a loop. Released from within the deallocation of
/// their parents, a long chain of models would exhaust the stack.
final class Teardown {
  private var open: ContiguousArray<ModelObject>

  private init(_ models: ContiguousArray<ModelObject>) { open = models }

  /// Takes the models over. The caller's array is empty before the first of them is released.
  static func release(_ models: inout ContiguousArray<ModelObject>) {
    if case .teardown(let outer) = ThreadTracker.current {
      outer.open.append(contentsOf: models)
      models = []
      return
    }
    let teardown = Teardown(models)
    models = []
    ThreadTracker.run(.teardown(teardown)) {
      while !teardown.open.isEmpty { teardown.releaseLast() }
    }
  }

  /// Releases the last model. The list is not being accessed meanwhile, so it can take over the
  /// models below.
  private func releaseLast() { _ = open.popLast() }
}
