import Jetstream

/// A model of a module without reflection metadata.
public final class Blind: ModelObject {
  /// A property that nobody finds.
  @Property public var number = 0
}
