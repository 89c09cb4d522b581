import Jetstream

/// The classes of the fixtures in a newer version of the app, with the same names on the wire.
final class NewCanvas: ModelObject {
  override class var wireName: String { "Canvas" }
  @Property var name: String?
  @Property var shapes: ModelArray<NewShape> = []
  @Property var hidden: ModelArray<NewShape> = []
  @Property var selected: NewShape?
  @Property var title = "untitled"
  @Property var favorite: NewShape?
  @Property var groups: ModelArray<Group> = []
}

class NewShape: ModelObject {
  override class var wireName: String { "Shape" }
  @Property var x: Float = 0
  @Property var y: Float = 0
  @Property var label = ""
  @Property var tags: [Int] = []
  @Property(.local) var isHovered = false
  @Property var parts: ModelArray<NewShape> = []
  @Property var rotation = 0.0
  @Property var note: String?
  @Property var group: Group?
}

/// A class that the older version does not have, where it has the superclass.
final class Circle: NewShape {
  override class var wireName: String { "Circle" }
  @Property var radius = 1.0
  @Property var center: NewShape?
}

/// A class that the older version does not have at all.
final class Group: ModelObject {
  @Property var label = ""
  @Property var members: ModelArray<NewShape> = []
  @Property var groups: ModelArray<Group> = []
}
