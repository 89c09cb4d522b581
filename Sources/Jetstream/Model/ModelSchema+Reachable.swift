extension ModelSchema {
  /// Returns the class and those that property types lead to from it, with those that they lead to.
  ///
  /// - Parameter others: Classes that can occur besides, such as subclasses of a property's class.
  package func reachable(with others: [ModelSchema] = []) -> [ModelSchema] {
    var result: [ModelSchema] = []
    var seen: Set<ObjectIdentifier> = []
    var open = others.reversed() + [self]
    while let next = open.popLast() {
      guard seen.insert(ObjectIdentifier(next)).inserted else { continue }
      result.append(next)
      for property in next.properties {
        if let child = property.access.targetClass, child != ModelObject.self {
          open.append(ModelSchema.of(child))
        }
      }
    }
    return result
  }
}
