import Foundation

@testable import Jetstream

/// Changing one property of one model.
extension Thicket {
  func edit() {
    let twig = someTwig()
    switch random(22) {
    case 0, 1: set(twig, "text") { $0.text = "t\(random(4))" }
    case 2: set(twig, "note") { $0.note = random(4) }
    case 3: set(twig, "mark") { $0.mark = TwigMark(shown: random(2), hidden: random(3)) }
    case 4:
      set(twig, "day") {
        $0.day = Date(timeIntervalSinceReferenceDate: 7e8 + Double(random(1000)) / 777)
      }
    case 5, 6: set(twig, "count") { $0.count += random(5) - 2 }
    case 7: set(twig, "heat") { $0.heat = random(4) }
    case 8: set(twig, "friend") { $0.friend = chance(70) ? anyTwig() : nil }
    case 9, 10, 11:
      let (key, child) = (Twig.references[random(3)], chance(65) ? anyTwig() : nil)
      set(twig, "\(key) = \(number(child))") { $0[keyPath: key] = child }
    case 12: set(twig, "detach") { $0.detach() }
    default: editList(twig, Twig.lists[random(5) / 2])
    }
  }

  private func set(_ twig: Twig, _ what: String, _ body: (Twig) -> Void) {
    history.append("\(number(twig)).\(what)")
    body(twig)
  }

  private func editList(
    _ twig: Twig, _ key: ReferenceWritableKeyPath<Twig, ModelArray<Twig>>
  ) {
    let count = twig[keyPath: key].count
    let child = anyTwig()
    func note(_ what: String) { history.append("\(number(twig)).\(key) \(what)") }
    switch random(count == 0 ? 4 : 9) {
    case 0, 1:
      note("append \(number(child))")
      twig[keyPath: key].append(child)
    case 2:
      let place = random(count + 1)
      note("insert \(number(child)) at \(place)")
      twig[keyPath: key].insert(child, at: place)
    case 3:
      let list = (0..<random(4)).map { _ in anyTwig() }
      note("= \(list.map { number($0) })")
      twig[keyPath: key] = ModelArray(list)
    case 4, 5:
      let place = random(count)
      note("remove at \(place)")
      twig[keyPath: key].remove(at: place)
    case 6:
      note("removeAll")
      twig[keyPath: key].removeAll()
    default:
      let (from, to) = (random(count), random(count))
      note("move \(from) to \(to)")
      twig[keyPath: key].move(from: from, to: to)
    }
  }
}
