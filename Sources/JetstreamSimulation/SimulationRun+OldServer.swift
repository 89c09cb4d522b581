import Foundation
import Jetstream

/// The behavior of the old Node server that the engine does not show when it stands for it and speaks version
/// 1.
extension SimulationRun {
  /// Returns a client's frame as the old server reads it: it takes the number of a date for milliseconds, where
  /// all other peers take it for seconds.
  func readByServer(_ frame: [UInt8]) -> [UInt8] {
    guard versions.server == 1, let json = PlainJSON(frame) else { return frame }
    let read = json.messages.map { message in
      message.replacing("fragments") { .array($0.elements.map(withDatesAsRead)) }
    }
    return read == json.messages ? frame : Array(PlainJSON.array(read).json.utf8)
  }

  private func withDatesAsRead(_ fragment: PlainJSON) -> PlainJSON {
    guard let schema = server.scope.schema(named: fragment["clsName"]?.text ?? "") else {
      return fragment
    }
    return fragment.replacing("properties") { properties in
      let values = properties.members.map { name, value in
        guard schema[wireName: name]?.isDate == true, case .number(let text) = value,
          let number = Double(text)
        else { return (name, value) }
        // As precisely as dates are kept, so that the value counts as it was submitted.
        let date = Date(timeIntervalSince1970: number / 1_000)
        return (name, .number("\(date.timeIntervalSince1970)"))
      }
      return .object(Dictionary(uniqueKeysWithValues: values))
    }
  }
}

extension SimulationRun {
  /// Drops a change set without an answer, as an old server does that cannot read it. The client notices that
  /// only by the answer to a later change set, so a change set is dropped only if a later one is in transit.
  func dropSet(of client: SimulatedClient, _ pick: Int) {
    guard Double(pick % 97) / 97 < configuration.features.droppedSets,
      let session = client.session
    else { return }
    network.tamper(client.number, toServer: true) { packets, frames in
      let indexes = frames.map { Self.setIndexes(in: packets[$0].packet) }
      guard let last = indexes.joined().max() else { return }
      let early = frames.indices.filter { indexes[$0].max().map { $0 < last } ?? false }
      if early.isEmpty { return }
      let at = early[pick % early.count]
      for index in indexes[at] { set(session, index)?.isDropped = true }
      packets.remove(at: frames[at])
    }
  }

  /// Returns the indexes of the messages in a packet that carry change sets.
  private static func setIndexes(in packet: SimulatedNetwork.Packet) -> [Int] {
    guard case .frame(let frame) = packet, let json = PlainJSON(frame) else { return [] }
    return json.messages.filter { $0["type"]?.text == "ScopeSync" }
      .compactMap { $0["index"]?.whole }
  }
}

extension ModelSchema.Property {
  fileprivate var isDate: Bool {
    switch type {
    case .date, .optional(.date): true
    default: false
    }
  }
}

extension PlainJSON {
  /// Returns the object with another value for a key that it has.
  fileprivate func replacing(_ key: String, _ change: (PlainJSON) -> PlainJSON) -> PlainJSON {
    guard case .object(var members) = self, let value = members[key] else { return self }
    members[key] = change(value)
    return .object(members)
  }
}
