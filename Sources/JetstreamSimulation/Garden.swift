import Foundation
import Jetstream

/// The root of ``SimulationWorld/garden``.
final class GardenPlan: ModelObject {
  @Property var title = ""
  /// Derived from the title by an observer of the clients' apps.
  @Property var summary = ""
  @Property(.merge(.sum)) var budget = 0
  @Property(.counter) var visits = 0
  @Property([.counter, .minSyncInterval(.milliseconds(200))]) var steps = 0
  @Property(.minSyncInterval(.milliseconds(300))) var level = 0
  @Property(.counter) var seeds: UInt8 = 3
  @Property(.counter) var warmth: Int8 = 0
  @Property var layout: [String: [String: [Int]]] = [:]
  @Property var beds: ModelArray<GardenBed> = []
  @Property var nursery: ModelArray<GardenBed> = []
  @Property var favourite: GardenBed?
  @Property var marks: ModelDictionary<String, GardenBed> = [:]
  @WeakReference var oldest: GardenBed?
  @Property(.local) var clipboard: ModelArray<GardenBed> = []
  @Property(.local) var held: GardenBed?
}

/// A bed, or a plant in one.
class GardenBed: ModelObject {
  @Property var name = ""
  @Property var note: String?
  @Property var area: Float = 0
  @Property var isSunny = false
  @Property(.counter) var water: UInt8 = 0
  @Property(.counter) var harvest = 0
  @Property(.minSyncInterval(.milliseconds(250))) var height = 0.0
  @Property([.counter, .minSyncInterval(.milliseconds(150))]) var leaves = 0
  @Property(.merge(.sum)) var cost = 0
  @Property var plants: ModelArray<GardenBed> = []
  @Property var twin: GardenBed?
  @Property var corners: ModelDictionary<Int, GardenBed> = [:]
  @Property var plan: GardenPlan?
  @WeakReference var home: GardenPlan?
  @WeakReference var mother: GardenBed?
}

/// A model class that only clients know: the server rejects its models.
final class GardenIdea: GardenBed {
  @Property var reason = ""
}

extension MergeRule {
  /// Adds up the changes of both sides.
  static let sum = MergeRule.rule("sum") { conflict in
    func number(_ json: JSONValue) -> Int64 {
      if case .integer(let value) = json { value } else { 0 }
    }
    return .integer(number(conflict.theirs) + number(conflict.mine) - number(conflict.base))
  }
}

extension SimulationWorld {
  /// A garden of beds that are cut and pasted, held only by local properties, or refer to the root; with
  /// bounded and throttled counters, a merge rule of its own, undo, modifications that throw, and apps whose
  /// observers make changes. ``SimulationConfiguration/Features`` has the rates.
  public static let garden = SimulationWorld(
    "Garden", root: GardenPlan.init(uuid:),
    fill: { plan, random in
      for _ in 0..<4 { plan.beds.append(random.make(GardenBed.init(uuid:))) }
      for (number, bed) in plan.beds.enumerated() { bed.name = "bed \(number)" }
      plan.title = "Garden"
    },
    app: { plan, scope, process in GardenApp(plan, scope, process) },
    edit: { plan, app, random in
      var edits = GardenEdits(plan: plan, app: app, random: random)
      defer { random = edits.random }
      return edits.any()
    },
    scripts: [
      "clear": { plan, app, _ in
        app.scope.modifyAtomically("clear") {
          plan.nursery.append(contentsOf: plan.beds)
          plan.beds.removeAll()
          plan.title = "Cleared"
        }
        return "moves all beds to the nursery at once"
      },
      "water": { plan, _, _ in
        for bed in plan.beds { bed.water = bed.water < 250 ? bed.water + 5 : 255 }
        return "waters all beds"
      },
    ],
    problems: { $0.problems() }, clientModels: [GardenIdea.self]
  ).with(SimulatedRules.garden).serving(
    SimulatedProcedure { random in GardenRound(water: UInt8(random.number(in: 0...9))) })
}
