import Jetstream

/// Observes a drawing and says in words what happens to it.
@Studio
final class Narrator {
  /// Its movements are not told.
  var ignored: Shape?

  private let canvas: Canvas
  private let say: (String) -> Void
  /// Shapes that have moved within the last second, with the place that was told.
  private var moving: [ObjectIdentifier: Place] = [:]

  private struct Place: Equatable {
    let x, y: Float

    @Studio
    init(_ shape: Shape) { (x, y) = (shape.x, shape.y) }
  }

  init(_ canvas: Canvas, say: @escaping (String) -> Void) {
    self.canvas = canvas
    self.say = say
    for shape in canvas.shapes { follow(shape) }
    canvas.observeCollectionAdd(self, \.shapes) { me, shape, position in
      me.say("added \(me.name(shape)) at position \(position + 1) of \(me.canvas.shapes.count)")
      me.follow(shape)
    }
    canvas.observeCollectionRemove(self, \.shapes) { me, shape, _ in
      shape.removeObservers(me)
      me.moving[ObjectIdentifier(shape)] = nil
      me.say("removed \(me.name(shape)), \(me.canvas.shapes.count) left")
    }
    canvas.observeCollectionMove(self, \.shapes) { me, shape, from, to in
      me.say("restacked \(me.name(shape)) from position \(from + 1) to \(to + 1)")
    }
    canvas.observeChange(self, \.name) { me in
      me.say("named the drawing \(me.canvas.name.map { "\"\($0)\"" } ?? "nothing")")
    }
  }

  /// Observers are told once in a tick, however many of the named properties have changed.
  private func follow(_ shape: Shape) {
    shape.observeChange(self, \.x, \.y) { [unowned shape] me in me.moved(shape) }
    shape.observeChange(self, \.width, \.height) { [unowned shape] me in
      me.say("resized \(me.name(shape)) to \(text(shape.width)) x \(text(shape.height))")
    }
    shape.observeChangeImmediately(self, \.color) { [unowned shape] me, old, new in
      me.say("recoloured \(me.name(shape)) from \(old) to \(new)")
    }
  }

  /// Says the first movement at once and where the shape is a second later, so that a shape that
  /// moves all the time does not drown everything else.
  private func moved(_ shape: Shape) {
    let key = ObjectIdentifier(shape)
    guard shape !== ignored, moving[key] == nil else { return }
    tellPlace(of: shape)
    Task { [weak self, weak shape] in
      try? await Task.sleep(for: .seconds(1))
      guard let self, let told = moving.removeValue(forKey: key), let shape else { return }
      if Place(shape) != told { moved(shape) }
    }
  }

  private func tellPlace(of shape: Shape) {
    moving[ObjectIdentifier(shape)] = Place(shape)
    say("moved \(name(shape)) to \(text(shape.x)), \(text(shape.y))")
  }

  /// The first letters of its UUID are enough to tell a few shapes apart.
  private func name(_ shape: Shape) -> String {
    "shape \(shape.uuid.uuidString.prefix(8).lowercased()) (\(shape.color))"
  }
}

private func text(_ number: Float) -> String { "\((number * 10).rounded() / 10)" }
