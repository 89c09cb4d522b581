import Jetstream

/// A model of a module without reflection metadata.
public final class Blind: ModelObject {
  @Property public var number = 0
}
