import Jetstream

/// The cost of a scope's digest: per model when it is computed for all, and per ping when nothing has changed.
func digestRows() -> [Row] {
  [
    Row(name: "digest of 100,000 models, each", unit: "ns", bar: 6_000, rounds: 5) {
      let scope = makeScope()
      return Probes(ours: {
        nanoseconds { precondition(ScopeDigest(scope).total(budget: .max) != nil) } / 100_000
      })
    },
    Row(name: "digest of 100,000 models, nothing changed", unit: "ns", bar: 150, rounds: 5) {
      let scope = makeScope()
      let digest = ScopeDigest(scope)
      _ = digest.total(budget: .max)
      return Probes(ours: {
        withExtendedLifetime(scope) {
          nanoseconds { for _ in 0..<1_000 { precondition(digest.total() != nil) } } / 1_000
        }
      })
    },
  ]
}

private func makeScope() -> Scope {
  let canvas = Canvas()
  let scope = Scope(name: "Canvas", root: canvas, ticker: .manual())
  for number in 1..<100_000 {
    let shape = Shape()
    shape.x = Float(number)
    canvas.shapes.append(shape)
  }
  scope.flush()
  return scope
}
