/// A client that behaves like the old ones in browsers, in plain JSON. It shows at once what the server sends,
/// even over its own undecided changes; sends whole values; restores the earlier value when a change is
/// rejected, unless it has changed the property again; acknowledges with its pings, not when it submits; and
/// starts anew with each connection.
final class OldBrowser: CustomStringConvertible {
  /// Stands for a WebSocket ping, and for its pong.
  static let probe = Array("a WebSocket ping".utf8)

  /// Its number in the network.
  let number: Int
  private(set) var model = StreamReference()
  private(set) var problems: [String] = []
  private let scope: String
  private let kinds: (String) -> [String: PropertyKind]
  private let connect: () -> Void
  private let send: ([UInt8]) -> Void
  private var next = 1
  private var heard = 0
  private var pingDue: Duration = .zero
  private let pingInterval: Duration
  private var now: Duration = .zero
  /// The time at which it received the full state; nil before that.
  private(set) var loadedAt: Duration?
  private var stateParts: [PlainJSON] = []
  private var hasState = false
  /// The undecided changes, by the index of the message: each property with the value before.
  private var pending: [Int: [(key: StreamReference.Key, before: PlainJSON)]] = [:]

  init(
    number: Int, scope: String, isSlow: Bool,
    kinds: @escaping (String) -> [String: PropertyKind], connect: @escaping () -> Void,
    send: @escaping ([UInt8]) -> Void
  ) {
    (self.number, self.scope, self.kinds) = (number, scope, kinds)
    (self.connect, self.send) = (connect, send)
    pingInterval = .milliseconds(isSlow ? Simulation.Times.slowPing : Simulation.Times.ping)
  }

  var description: String { "Browser \(number)" }

  var isAtRest: Bool { hasState && pending.isEmpty }

  /// Loads the page: starts anew with a new connection.
  func load() {
    (model, pending, stateParts) = (StreamReference(), [:], [])
    (next, heard, hasState, loadedAt) = (1, 0, false, nil)
    connect()
  }

  func opened() {
    say(#"{"type":"SessionCreate","index":0,"version":"0.1.0","params":{}}"#)
  }

  func received(_ frame: [UInt8]) {
    if frame == Self.probe { return send(frame) }
    for message in PlainJSON(frame)?.elements ?? [] {
      let index = message["index"]?.whole ?? -1
      if index > 0, index <= heard { continue }
      if index > heard + 1 { return load() }
      if index > 0 { heard = index }
      take(message)
    }
  }

  private func take(_ message: PlainJSON) {
    let fragments = message["fragments"]?.elements ?? []
    switch message["type"]?.text {
    case "SessionCreateReply":
      next = 2
      say(#"{"type":"ScopeFetch","index":1,"name":"\#(scope)","params":{}}"#)
    case "ScopeState":
      stateParts += fragments
      if message["more"] != nil { return }
      model.begin(root: message["rootUUID"]?.text ?? "", stateParts)
      (stateParts, hasState, loadedAt) = ([], true, now)
    case "ScopeSync":
      model.apply(fragments, kinds)
      problems += model.takeProblems().map { "\(self): \($0)" }
    case "ScopeSyncReply": decide(message)
    default: break
    }
  }

  private func decide(_ reply: PlainJSON) {
    let answers = reply["fragmentReplies"]?.elements ?? []
    guard let changed = pending.removeValue(forKey: reply["replyTo"]?.whole ?? -1) else { return }
    guard answers.contains(where: { ($0["error"] ?? .null) != .null }) else { return }
    for (key, before) in changed where !isPending(key) { set(key, to: before) }
  }

  private func isPending(_ key: StreamReference.Key) -> Bool {
    pending.values.contains { $0.contains { $0.key == key } }
  }

  private func set(_ key: StreamReference.Key, to value: PlainJSON) {
    guard let className = model.models[key.uuid]?.className else { return }
    model.apply([
      .object([
        "type": .string("change"), "uuid": .string(key.uuid), "clsName": .string(className),
        "properties": .object([key.name: value]),
      ])
    ])
  }

  func advance(to now: Duration) {
    self.now = now
    guard now >= pingDue else { return }
    pingDue = now + pingInterval
    if hasState { say(#"{"type":"Ping","index":0,"ack":\#(heard),"resendMissing":false}"#) }
  }

  private func say(_ text: String) { send(Array(text.utf8)) }

  // MARK: Edits

  /// Changes a random property of a random model and submits the change. Returns a description of it.
  ///
  /// - Parameter isRounded: whether a number becomes one that a `Float` cannot hold.
  func edit(
    _ random: inout SimulationRandom, isRounded: Bool,
    _ kinds: (String) -> [String: PropertyKind]
  ) -> String {
    guard hasState, let uuid = random.pick(from: model.reachable(kinds).sorted()),
      let found = model.models[uuid]
    else { return "has nothing to edit" }
    let names = kinds(found.className).filter { $0.value != .reference && $0.value != .entries }
      .keys.sorted()
    guard let name = random.pick(from: names), let kind = kinds(found.className)[name] else {
      return "has nothing to edit"
    }
    let key = StreamReference.Key(uuid: uuid, name: name)
    let before = found.properties[name] ?? .null
    var additions: [PlainJSON] = []
    var value =
      kind == .collection
      ? elements(before.texts, &additions, &random, kinds)
      : other(before, of: name, in: found.className, &random, kinds)
    if isRounded, kind == .plain, case .number = before { value = .number("16777217") }
    guard let value, value != before else { return "changes nothing" }
    model.apply(additions)
    set(key, to: value)
    let change = PlainJSON.object([
      "type": .string("change"), "uuid": .string(uuid), "clsName": .string(found.className),
      "properties": .object([name: value]),
    ])
    submit(additions + [change], [(key, before)])
    return "sets \(key) to \(value)"
  }

  private func submit(
    _ fragments: [PlainJSON], _ changed: [(key: StreamReference.Key, before: PlainJSON)]
  ) {
    pending[next] = changed
    say(
      #"{"index":\#(next),"type":"ScopeSync","scopeIndex":0,"atomic":false,"fragments":"#
        + PlainJSON.array(fragments).json + "}")
    next += 1
  }

  /// Returns a collection with an element removed, inserted or moved.
  private func elements(
    _ now: [String], _ additions: inout [PlainJSON], _ random: inout SimulationRandom,
    _ kinds: (String) -> [String: PropertyKind]
  ) -> PlainJSON? {
    var result = now
    let at = now.isEmpty ? 0 : random.number(in: 0...now.count - 1)
    switch random.number(in: 0...3) {
    case 0 where !now.isEmpty: result.remove(at: at)
    case 1 where !now.isEmpty: result.append(result.remove(at: at))
    default:
      guard let sample = now.first.flatMap({ model.models[$0] }) else { return nil }
      let new = random.uuid().uuidString.lowercased()
      var properties = sample.properties
      for (name, kind) in kinds(sample.className) {
        if kind == .collection { properties[name] = .array([]) }
        if kind == .reference { properties[name] = nil }
        if kind == .entries {
          properties = properties.filter { !PropertyKind.isEntry($0.key, of: name) }
        }
      }
      additions.append(
        .object([
          "type": .string("add"), "uuid": .string(new), "clsName": .string(sample.className),
          "properties": .object(properties),
        ]))
      result.insert(new, at: at)
    }
    return .array(result.map { .string($0) })
  }

  /// Returns another value of the same type: one of another model, or one that is made from this one.
  private func other(
    _ now: PlainJSON, of name: String, in className: String, _ random: inout SimulationRandom,
    _ kinds: (String) -> [String: PropertyKind]
  ) -> PlainJSON? {
    switch now {
    case .bool(let flag): return .bool(!flag)
    case .number(let text) where Int(text) != nil && abs(Int(text)!) < 100 && name != "color":
      return .number(String(abs(Int(text)!) + 1))
    default:
      let values = model.reachable(kinds).sorted().compactMap { model.models[$0] }
        .filter { $0.className == className }.compactMap { $0.properties[name] }
      return random.pick(from: values)
    }
  }
}

extension PlainJSON {
  /// The value as JSON text.
  var json: String {
    switch self {
    case .null: "null"
    case .bool(let flag): "\(flag)"
    case .number(let text): text
    case .string(let text): Self.quoted(text)
    case .array(let elements): "[" + elements.map(\.json).joined(separator: ",") + "]"
    case .object(let members):
      "{"
        + members.sorted { $0.key < $1.key }.map { Self.quoted($0.key) + ":" + $0.value.json }
        .joined(separator: ",") + "}"
    }
  }

  private static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\u{0}"..."\u{1F}":
        result += "\\u00" + (scalar.value < 16 ? "0" : "") + String(scalar.value, radix: 16)
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
