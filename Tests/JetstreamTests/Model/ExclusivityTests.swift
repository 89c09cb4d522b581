import Testing

@testable import Jetstream

/// Changes in place that do unusual things with the value, and observers that come back to it.
#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct ExclusivityTests {
  let a = Node("a")
  let b = Node("b")
  let root = Node("root")
  let scope: Scope
  let nodes = (0..<6).map { Node("\($0)") }
  let listener = Listener()

  init() {
    root.left = a
    root.right = b
    scope = manualScope(root)
    a.items = [nodes[0], nodes[1]]
    b.items = [nodes[2]]
    scope.flush()
    for node in [a, b] {
      node.signals.onCollectionChange.listen(listener) { me, change in
        me.log.append("\(node.label) \(change.kind) \((change.model as! Node).label)")
      }
    }
  }

  private func check(_ node: Node, _ labels: String...) {
    #expect(node.items.map(\.label) == labels)
    for child in node.items {
      #expect(child.parents.contains { $0.parent === node && $0.key == "items" })
      #expect(child.scope === scope)
    }
    node.items.list.storage?.checkInvariants()
    #expect(node.items.list.storage?.lease == nil)
  }

  @Test("a copy of a collection is read while the property is changed in place")
  func collectionReadMeanwhile() {
    let all = a.items
    a.items.removeAll { node in
      #expect(all.map(\.label) == ["0", "1"])
      return node.label == "0"
    }
    check(a, "1")
  }

  @Test("two collections are swapped")
  func swapped() {
    swap(&a.items, &b.items)
    check(a, "2")
    check(b, "0", "1")
    #expect(nodes[0].parents.map(\.parent) == [b])
    let sets = scope.changeSets {}
    #expect(sets.first?.fragments.map(\.kind) == [.change, .change])
  }

  @Test("both are changed while they are swapped")
  func swappedAndChanged() {
    func change(_ x: inout ModelArray<Node>, _ y: inout ModelArray<Node>) {
      x.append(nodes[3])
      swap(&x, &y)
      x.append(nodes[4])
      y.remove(at: 0)
    }
    change(&a.items, &b.items)
    check(a, "2", "4")
    check(b, "1", "3")
    #expect(nodes[0].scope == nil)
  }

  @Test("the whole value is replaced through inout")
  func replaced() {
    func replace(_ items: inout ModelArray<Node>, by other: ModelArray<Node>) {
      items.append(nodes[5])
      items = other
      items.append(nodes[4])
    }
    replace(&a.items, by: [nodes[1], nodes[3]])
    check(a, "1", "3", "4")
    #expect(nodes[0].parents.isEmpty && nodes[5].parents.isEmpty)
    #expect(listener.log == ["a remove(at: 0) 0", "a insert(at: 1) 3", "a insert(at: 2) 4"])
  }

  @Test("a copy taken before and one taken inside a change, changed or not, stay by themselves")
  func copies() {
    let before = a.items
    var inside = ModelArray<Node>()
    func change(_ items: inout ModelArray<Node>) {
      items.append(nodes[3])
      inside = items
      inside.append(nodes[5])
      items.append(nodes[4])
    }
    change(&a.items)
    check(a, "0", "1", "3", "4")
    #expect(before.map(\.label) == ["0", "1"])
    #expect(inside.map(\.label) == ["0", "1", "3", "5"])
    #expect(nodes[5].parents.isEmpty)
    inside.remove(at: 0)
    check(a, "0", "1", "3", "4")
  }

  @Test("a copy that outlives a change goes on in the storage that the change began in")
  func copyTakesTheStorage() {
    var inside = ModelArray<Node>()
    func change(_ items: inout ModelArray<Node>) {
      inside = items
      items = []
      inside.append(nodes[3])
    }
    change(&a.items)
    check(a)
    #expect(inside.map(\.label) == ["0", "1", "3"])
    #expect(nodes[3].parents.isEmpty)
    inside.append(nodes[4])
    #expect(inside.list.storage?.lease == nil)
  }

  @Test("a change that throws keeps and reports what it had done")
  func throwing() {
    struct Stop: Error {}
    func change(_ items: inout ModelArray<Node>) throws {
      items.append(nodes[3])
      throw Stop()
    }
    #expect(throws: Stop.self) { try change(&a.items) }
    check(a, "0", "1", "3")
    #expect(listener.log == ["a insert(at: 2) 3"])
  }

  @Test("an observer reads and writes the collection that has just changed")
  func observerWritesCollection() {
    a.observeCollectionAdd(listener, \.items) { [a, nodes] me, child, _ in
      #expect(a.items.contains(child))
      if child === nodes[3] { a.items.append(nodes[4]) }
    }
    a.items.append(nodes[3])
    check(a, "0", "1", "3", "4")
  }

  @Test("an observer reads and writes the value that has just changed")
  func observerWritesValue() {
    a.observeChangeImmediately(listener, \.number) { [a] me, old, new in
      me.log.append("\(old)>\(new)=\(a.number)")
      if a.number < 3 { a.number += 1 }
    }
    a.number += 1
    #expect(listener.log == ["0>1=1", "1>2=2", "2>3=3"])
    a.observeChangeImmediately(listener, \.left) { [a, nodes] _, _, new in
      if new === nodes[0] { a.left = nodes[1] }
    }
    a.left = nodes[0]
    #expect(a.left === nodes[1])
    #expect(nodes[0].parents.count == 1)
  }

  @Test("an inout argument writes back once")
  func inoutValue() {
    a.signals.onPropertyChange.listen(listener) { me, change in me.called() }
    func change(_ number: inout Int, _ left: inout Node?) {
      number = 5
      number = 7
      left = nodes[4]
      left = nodes[5]
    }
    change(&a.number, &a.left)
    #expect(listener.count == 2)
    #expect(a.number == 7 && a.left === nodes[5])
    #expect(nodes[4].parents.isEmpty)
    #expect(nodes[5].scope === scope)
  }

  @Test("changes of one property inside of changes of another")
  func nested() {
    func change(_ items: inout ModelArray<Node>) {
      items.append(nodes[3])
      b.items.append(nodes[3])
      nodes[3].number = 1
      items.remove(at: 0)
      nodes[1].items.append(nodes[0])
    }
    change(&a.items)
    check(a, "1", "3")
    check(b, "2", "3")
    #expect(nodes[0].scope === scope)
    #expect(nodes[3].parents.count == 2)
  }

  @Test("an observer of one property reads the other one of a swap")
  func swapIsRead() {
    (a.number, a.label) = (1, "a")
    b.number = 2
    a.left = nodes[4]
    let other = nodes[5]
    b.right = other
    for node in [a, b] {
      node.signals.onPropertyChange.listen(listener) { [a, b] me, change in
        me.log.append("\(change.key) \(a.number) \(b.number) \(a.left === other)")
      }
    }
    swap(&a.number, &b.number)
    swap(&a.left, &b.right)
    // The access that began last ends first.
    #expect(
      listener.log == ["number 1 1 false", "number 2 1 false", "right 2 1 false", "left 2 1 true"])
    #expect(a.left === other && b.right === nodes[4])
    #expect(other.parents.map(\.parent) == [a])
  }

  @Test("who reads a property that is being changed gets the value before")
  func readMeanwhile() {
    func change(_ number: inout Int, _ left: inout Node?) {
      number = 5
      left = nodes[4]
      #expect(a.number == 0 && a.left == nil)
      #expect(nodes[4].scope == nil)
    }
    change(&a.number, &a.left)
    #expect(a.number == 5 && a.left === nodes[4])
  }

  @Test(
    "of a write within a change the later one stays; a change that changes nothing takes nothing back"
  )
  func writtenMeanwhile() {
    a.signals.onPropertyChange.listen(listener) { me, change in
      me.log.append("\(change.old as! Int) \(change.new as! Int)")
    }
    func change(_ number: inout Int, to value: Int?) {
      a.number = 7
      if let value { number = value }
    }
    change(&a.number, to: 5)
    #expect(a.number == 5)
    change(&a.number, to: nil)
    #expect(a.number == 7)
    #expect(listener.log == ["0 7", "7 5", "5 7"])
  }

  @Test("a collection of a model that comes into a scope while it is changed")
  func attachedMeanwhile() {
    let late = Node("late")
    late.items = [nodes[3], nodes[4]]
    func change(_ items: inout ModelArray<Node>) {
      items.remove(at: 0)
      items.append(nodes[5])
      root.items.append(late)
      #expect(nodes[3].scope === scope && nodes[5].scope == nil)
    }
    change(&late.items)
    check(late, "4", "5")
    #expect(nodes[3].scope == nil)
    #expect(nodes[3].record?.scopedParents == 0 && nodes[5].record?.scopedParents == 1)
    func empty(_ items: inout ModelArray<Node>) {
      items = []
      root.items = []
      #expect(nodes[4].scope == nil)
    }
    empty(&late.items)
    #expect(late.items.isEmpty && nodes[4].parents.isEmpty)
    #expect(nodes[4].record?.scopedParents == 0)
  }

  @Test("a plain array of a model that nothing knows yet grows where it is")
  func growsInPlace() {
    let plain = Lists()
    plain.numbers.reserveCapacity(100)
    let place = plain.numbers.withUnsafeBufferPointer { $0.baseAddress }
    for number in 0..<100 { plain.numbers.append(number) }
    #expect(plain.numbers.withUnsafeBufferPointer { $0.baseAddress } == place)
    #expect(plain.numbers == Array(0..<100))
  }
}

private final class Lists: ModelObject {
  @Property var numbers: [Int] = []
}
