import CJetstream

/// What property accesses on the calling thread are reported to, while something listens.
///
/// The tracker of a thread is found through a thread-local pointer of the C target; the gate tells
/// every reader whether it is worth looking.
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

  /// Runs `body` with `kind` as the calling thread's tracker; a tracker that was there before is
  /// back afterwards.
  ///
  /// Sound because `body` cannot suspend: the pointer is set and reset on one thread, and the
  /// tracker is kept alive by this frame for as long as the pointer leads to it.
  static func run<Result>(_ kind: Kind, _ body: () throws -> Result) rethrows -> Result {
    let tracker = ThreadTracker(kind)
    let previous = jetstream_tracker()
    jetstream_set_tracker(Unmanaged.passUnretained(tracker).toOpaque())
    // Whoever looks for a teardown looks without asking the gate.
    let gate: Int32 = if case .teardown = kind { 0 } else { 1 }
    jetstream_gate_add(gate)
    defer {
      jetstream_gate_add(-gate)
      jetstream_set_tracker(previous)
    }
    return try withExtendedLifetime(tracker, body)
  }

  /// The calling thread's tracker.
  static var current: Kind? {
    jetstream_tracker().map {
      Unmanaged<ThreadTracker>.fromOpaque($0).takeUnretainedValue().kind
    }
  }
}

/// Collects which properties of which models are read.
final class ReadTracker {
  struct Read: Hashable {
    let model: ModelObject
    let index: Int
  }

  private static let searched = 8

  private(set) var reads: [Read] = []
  private var known: Set<Read> = []

  func note(_ model: ModelObject, index: Int) {
    let read = Read(model: model, index: index)
    // Most code reads little, which is searched faster than hashed.
    if reads.count < Self.searched {
      if !reads.contains(read) { reads.append(read) }
      return
    }
    if known.isEmpty { known = Set(reads) }
    if known.insert(read).inserted { reads.append(read) }
  }

  /// Runs `body` and gives its result with what it read.
  static func track<Result>(_ body: () -> Result) -> (result: Result, reads: [Read]) {
    let tracker = ReadTracker()
    let result = ThreadTracker.run(.reads(tracker), body)
    return (result, tracker.reads)
  }
}

/// Releases the models below one that is deallocated, each from here instead of from within the
/// deallocation of its parent, which would exhaust the stack for a long chain.
final class Teardown {
  private var open: ContiguousArray<ModelObject>

  private init(_ models: ContiguousArray<ModelObject>) { open = models }

  /// Takes the models over: the caller's array is empty before the first of them is released.
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

  /// The model is released when this returns, with the list free to take what was below it.
  private func releaseLast() { _ = open.popLast() }
}
