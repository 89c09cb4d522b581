import Foundation

/// Models that pending sets add. Nobody else knows a new one; but one that was removed here and put back
/// is added again while others may go on changing it. Then what the addition says of its properties covers
/// them as an assignment would.
extension Replica {
  /// An addition by a set that the server has not decided.
  struct Addition {
    /// The set's number.
    let set: Int
    let properties: JSONObject
  }

  func noteAdditions(_ fragments: [SyncFragment], of number: Int) {
    for fragment in fragments where fragment.kind == .add {
      additions[fragment.uuid] = Addition(set: number, properties: fragment.properties)
    }
  }

  /// Others are about to change a property: what a pending set says of it, by adding the model, covers it.
  func coverIfAdded(_ name: PropertyKey) {
    guard !additions.isEmpty, let addition = additions[name.uuid],
      let value = addition.properties[name.name], !overlay.covers(name, by: addition.set)
    else { return }
    let isCollection = scope.model(name.uuid)?.schema[wireName: name.name]?.isCollection == true
    // What is added again takes nothing out of a collection.
    if isCollection, case .list(let list) = PropertyContent(value) {
      let insertions = list.map { PropertyOperation.insert($0, .end) }
      overlay.add(
        set: addition.set, key: name, .operations(insertions, value: nil, range: .unknown),
        base: .known(.list([])))
    } else {
      overlay.add(
        set: addition.set, key: name, .assign(PropertyContent(value)), base: .known(.json(.null)))
    }
  }

  /// The server has decided about an addition.
  func decide(addition fragment: SyncFragment, of number: Int, isAccepted: Bool) {
    if additions[fragment.uuid]?.set == number { additions[fragment.uuid] = nil }
    for (key, value) in fragment.properties {
      let name = PropertyKey(uuid: fragment.uuid, name: key)
      guard overlay.covers(name) else { continue }
      touch(name, className: fragment.className)
      if overlay.covers(name, by: number) {
        overlay.decide(set: number, key: name, isAccepted: isAccepted)
      } else if isAccepted {
        overlay.confirm(name, value: value)
      }
    }
  }
}
