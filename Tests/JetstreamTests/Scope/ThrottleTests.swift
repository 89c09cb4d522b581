import Foundation
import Testing

@testable import Jetstream

private final class Gauge: ModelObject {
  @Property([.minSyncInterval(.milliseconds(50)), .wireName("v")]) var value = 0
  @Property(.minSyncInterval(.milliseconds(200))) var slow: Int?
  @Property var note = ""
  @Property var parts: ModelArray<Gauge> = []
}

/// A scope of one gauge, with what comes out of it and when.
private final class Bench {
  let gauge = Gauge()
  let scope: Scope
  var sets: [(at: Duration, set: ChangeSet)] = []

  init() {
    scope = manualScope(gauge)
    scope.onChanges.listen { [unowned self] in sets.append((scope.ticker.now, $0)) }
  }

  /// The times in milliseconds and the fragments' properties.
  var log: [String] {
    sets.map { at, set in
      "\(at / .milliseconds(1)): "
        + set.fragments.map { "\($0.properties)" }.joined(separator: " ")
    }
  }

  func advance(_ milliseconds: Double) {
    scope.ticker.advance(by: .nanoseconds(Int64(milliseconds * 1e6)))
  }

  func remote(_ properties: JSONObject) {
    let fragment = SyncFragment(
      .change, uuid: gauge.uuid, className: "Gauge", properties: properties)
    #expect(scope.apply([fragment]).isComplete)
  }
}

@Suite(.paced) struct ThrottleTests {
  private let bench = Bench()
  private var gauge: Gauge { bench.gauge }
  private var scope: Scope { bench.scope }

  @Test("A scope that gives its root away has delivered the last values")
  func rootLeaves() {
    gauge.value = 1
    scope.flush()
    gauge.value = 2
    scope.root = nil
    scope.flush()
    #expect(bench.log == ["0.0: {\"v\":1}", "0.0: {\"v\":2}"])
  }

  @Test("1000 writes in 140 ms are 3 fragments, and then the last value")
  func continuous() {
    let listener = Listener()
    gauge.observeChangeImmediately(listener, \.value) { me, _, _ in me.called() }
    for number in 1...1000 {
      gauge.value = number
      bench.advance(0.14)
    }
    #expect(listener.count == 1000, "observers are not held up")
    #expect(bench.sets.map(\.at) == [.milliseconds(10), .milliseconds(60), .milliseconds(110)])
    #expect(bench.sets.allSatisfy { $0.set.fragments.count == 1 })
    bench.advance(1_000)
    #expect(bench.sets.count == 4)
    #expect(bench.log.last == #"160.0: {"v":1000}"#)
    #expect(scope.interval.throttle.count == 0 && !scope.hasCollectedChanges)
    #expect(scope.ticker.isIdle)
  }

  @Test("What is written inside of one interval ends with the last value")
  func trailing() {
    gauge.value = 1
    bench.advance(10)
    for number in 2...10 {
      gauge.value = number
      bench.advance(1)
    }
    bench.advance(500)
    #expect(bench.log == [#"10.0: {"v":1}"#, #"60.0: {"v":10}"#])
    #expect(bench.sets[1].set.bases == [gauge.uuid: ["v": 1]])
    #expect(scope.interval.throttle.count == 0)
  }

  @Test("other properties of the model go on time, each throttled one at its own")
  func others() {
    gauge.value = 1
    gauge.slow = 1
    bench.advance(10)
    gauge.value = 2
    gauge.slow = 2
    bench.advance(10)
    gauge.note = "a"
    bench.advance(10)
    gauge.note = "b"
    bench.advance(300)
    #expect(
      bench.log == [
        #"10.0: {"v":1,"slow":1}"#, #"30.0: {"note":"a"}"#, #"40.0: {"note":"b"}"#,
        #"60.0: {"v":2}"#, #"210.0: {"slow":2}"#,
      ])
  }

  @Test("a value that is back at its base when its time comes leaves nothing")
  func returns() {
    gauge.value = 1
    bench.advance(10)
    gauge.value = 2
    bench.advance(20)
    gauge.value = 1
    bench.advance(500)
    #expect(bench.log == [#"10.0: {"v":1}"#])
    #expect(!scope.hasCollectedChanges && scope.interval.throttle.count == 0)
  }

  @Test("a value that is back at its base while it waits gives way to that of another replica")
  func givesWay() {
    gauge.value = 1
    bench.advance(10)
    gauge.value = 2
    gauge.value = 1
    bench.remote(["v": 7])
    #expect(gauge.value == 7)
    bench.advance(500)
    #expect(gauge.value == 7)
    #expect(bench.log == [#"10.0: {"v":1}"#])
    #expect(!scope.hasCollectedChanges && scope.interval.throttle.count == 0)
  }

  @Test("after a quiet interval a change goes at once, and nothing is kept meanwhile")
  func quiet() {
    gauge.value = 1
    bench.advance(60)
    #expect(scope.interval.throttle.count == 0)
    gauge.value = 2
    bench.advance(10)
    #expect(bench.log == [#"10.0: {"v":1}"#, #"70.0: {"v":2}"#])
  }

  @Test("flush sends what is held back too; sealing and taking fragments do not")
  func flush() {
    gauge.value = 1
    bench.advance(10)
    gauge.value = 2
    scope.sealChanges()
    #expect(scope.takeFragments().isEmpty)
    #expect(scope.hasCollectedChanges)
    #expect(bench.sets.count == 1)
    scope.flush()
    #expect(bench.log.last == #"10.0: {"v":2}"#)
    gauge.value = 3
    bench.advance(40)
    #expect(bench.sets.count == 2)
    bench.advance(10)
    #expect(bench.log.last == #"60.0: {"v":3}"#, "the flush began an interval of its own")
    gauge.value = 4
    bench.advance(50)
    #expect(bench.log.last == #"110.0: {"v":4}"#)
  }

  @Test("a remote write while a value is held back becomes its base")
  func remote() {
    gauge.value = 1
    bench.advance(10)
    gauge.value = 2
    bench.advance(10)
    bench.remote(["v": 7])
    #expect(gauge.value == 2)
    bench.advance(40)
    #expect(bench.log == [#"10.0: {"v":1}"#, #"60.0: {"v":2}"#])
    #expect(bench.sets[1].set.bases == [gauge.uuid: ["v": 7]])
    gauge.value = 3
    bench.remote(["v": 3])
    bench.advance(500)
    #expect(bench.sets.count == 2, "the others have the value already")
  }

  @Test(
    "additions carry the current value and begin an interval; a model that leaves keeps nothing")
  func structure() {
    let part = Gauge()
    part.value = 1
    gauge.parts.append(part)
    bench.advance(10)
    #expect(bench.sets.last?.set.fragments.first?.properties["v"] == 1)
    part.value = 2
    bench.advance(20)
    #expect(bench.sets.count == 1)
    gauge.parts.remove(part)
    bench.advance(10)
    #expect(bench.sets.count == 2)
    part.value = 3
    gauge.parts.append(part)
    bench.advance(10)
    #expect(bench.sets.count == 3)
    #expect(bench.sets.last?.set.fragments.first?.kind == .add)
    #expect(bench.sets.last?.set.fragments.first?.properties["v"] == 3)
    part.value = 4
    bench.advance(20)
    gauge.parts.move(from: 0, to: 0)
    gauge.parts = []
    gauge.parts.append(part)
    bench.advance(500)
    #expect(bench.sets.count == 4, "a model that comes back at once keeps what is held back")
    #expect(bench.log.last == #"100.0: {"v":4}"#)
  }

  @Test("what the others are to know of a held-back value is its base")
  func shared() {
    gauge.value = 1
    bench.advance(10)
    gauge.value = 2
    bench.advance(10)
    #expect(scope.fullState()[0].properties["v"] == 2)
    #expect(scope.sharedState()[0].properties["v"] == 1)
    #expect(gauge.currentProperties()["v"] == 1)
    #expect(gauge.currentJSON(of: gauge.schema["value"]!) == 1)
    bench.advance(100)
    #expect(scope.sharedState() == scope.fullState())
  }

  @Test("many throttled models, seeded: the last values arrive, and no two sets are too close")
  func seeded() {
    for seed in 0..<20 as Range<UInt64> {
      var generator = SeededGenerator(seed: seed)
      let bench = Bench()
      let copy = manualScope(Gauge(uuid: bench.gauge.uuid))
      var lastSent: [UUID: Duration] = [:]
      bench.scope.onChanges.listen { set in
        #expect(copy.apply(set.fragments).isComplete, "seed \(seed)")
        for fragment in set.fragments where fragment.properties["v"] != nil {
          let now = bench.scope.ticker.now
          if fragment.kind == .change, let last = lastSent[fragment.uuid] {
            #expect(now - last >= .milliseconds(50), "seed \(seed)")
          }
          lastSent[fragment.uuid] = now
        }
      }
      for _ in 0..<300 {
        switch Int.random(in: 0..<10, using: &generator) {
        case 0: bench.gauge.parts.append(Gauge())
        case 1: if let part = bench.gauge.parts.last { bench.gauge.parts.remove(part) }
        case 2: bench.gauge.note += "x"
        default:
          let models = [bench.gauge] + Array(bench.gauge.parts)
          models.randomElement(using: &generator)!.value = .random(in: 0..<4, using: &generator)
        }
        bench.advance(.random(in: 0..<15, using: &generator))
      }
      bench.advance(500)
      #expect(copy.canonicalJSON == bench.scope.canonicalJSON, "seed \(seed)")
      #expect(
        bench.scope.interval.throttle.count == 0 && !bench.scope.hasCollectedChanges, "seed \(seed)"
      )
    }
  }
}
