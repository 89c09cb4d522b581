import Jetstream
import JetstreamServer

/// The change sets that clients submit and the answers of the server, read from the frames.
extension SimulationRun {
  /// Notes which change sets the messages of a client carry.
  func noteSubmissions(in messages: [PlainJSON], by client: SimulatedClient) {
    guard let session = client.session else { return }
    for message in messages where message["type"]?.text == "ScopeSync" {
      let key = Self.key(session, message["index"]?.whole)
      let sent = message["fragments"]?.elements ?? []
      // The message is sent again.
      if submissions[key] != nil { continue }
      guard let set = carried(by: message, sent, of: client)
      else {
        report(
          .messages, "Client \(client.number) sends what is none of its undecided sets: \(message)")
        continue
      }
      client.noteSubmission()
      set.grant = grant(of: client, message)
      if message["number"] != nil {
        set.toldSeen = message["seen"]?.whole
        let seen = set.seen(in: client.position?.epoch)
        if set.toldSeen != seen, !set.isMadeInRestart, !set.isCall {
          report(
            .messages,
            "Client \(client.number) says that it had seen \(set.toldSeen.map(String.init) ?? "nothing special") "
              + "when it made \(set), which was \(seen.map(String.init) ?? "nothing special")")
        }
      }
      set.sent = sent
      submissions[key] = (set, client, sent)
    }
  }

  /// Returns the change set that a message carries: the one with its number. A client that sends no numbers
  /// sends, each time it is granted the scope, each change set that is undecided for it, once and in order, including
  /// those that the server has decided in an earlier session.
  private func carried(
    by message: PlainJSON, _ sent: [PlainJSON], of client: SimulatedClient
  ) -> SubmittedSet? {
    let grant = grant(of: client, message)
    let isCarried = { (set: SubmittedSet) in
      set.grant != grant && set.isCarried(by: sent, ownRoot: client.ownRoot)
    }
    if let number = message["number"]?.whole {
      return client.allSets.lazy.map(\.set).first { $0.place + 1 == number && isCarried($0) }
    }
    return client.sets.first { $0.grant != grant }.flatMap { isCarried($0) ? $0 : nil }
  }

  /// Returns the name of the grant of the scope under which a client sends a change set. In one session, a client from which
  /// the scope was taken gets it anew.
  private func grant(of client: SimulatedClient, _ message: PlainJSON) -> String {
    let session = client.session ?? ""
    let heard = client.highestReceived(in: versions.areSpread ? 1 : 0)
    let count = leaves[session]?.count { $0 <= heard } ?? 0
    return "\(session) \(message["scopeIndex"]?.whole ?? -1) \(count)"
  }

  /// Checks that the messages of a client do not rely on what a crash could take from its disk: the record of
  /// each change set that it sends must be durable, and so must the decisions that it acknowledges, because the
  /// server will not send them again.
  func checkSafety(of messages: [PlainJSON], by client: SimulatedClient) {
    guard let outbox = outboxes[client.number] else { return }
    for message in messages {
      if let number = message["number"]?.whole, !outbox.keepsSet(number, now: now) {
        report(.durability, "Client \(client.number) sends set \(number), which it may forget")
      }
      let kept = outbox.keptDecisions(now: now)
      if let decided = message["decided"]?.whole, decided > kept {
        report(
          .durability,
          "Client \(client.number) says to know all decisions up to \(decided), but those after \(kept) "
            + "may be forgotten")
      }
    }
  }

  /// Notes the replies among messages of the server, and checks that it sends a client's own change sets as such.
  func noteReplies(in messages: [PlainJSON], on id: Int) {
    guard let link = network.link(id) else { return }
    for message in messages {
      switch message["type"]?.text {
      case "SessionCreateReply":
        link.token = message["sessionToken"]?.text
        if let token = link.token { rights.note(token, of: link.client) }
      case "ScopeLeave":
        if let index = message["index"]?.whole {
          leaves[link.token ?? "", default: []].insert(index)
        }
      case "ScopeFetchReply":
        // The client may have another identity now.
        ownSequences[link.token ?? ""] = nil
      case "ScopeSync" where message["number"] == nil && message["repairs"] == nil:
        let sequence = message["sequence"]?.whole ?? 0
        if ownSequences[link.token ?? ""]?.contains(sequence) == true {
          report(
            .messages,
            "Client \(link.client) is sent its own change set at \(sequence) as another's")
        }
      case "ScopeSyncReply" where isBrowser(link): break
      case "ScopeSyncReply":
        // One that answers several change sets accepts each of them as it is.
        let count = message["count"]?.whole
        for before in (0..<(count ?? 1)).reversed() {
          if let sequence = message["sequence"]?.whole {
            ownSequences[link.token ?? "", default: []].insert(sequence - before)
          }
          decide(
            Self.key(link.token ?? "", message["replyTo"]?.whole.map { $0 - before }),
            by: message["index"]?.whole ?? -1,
            count == nil ? message.fragmentAnswers : nil,
            message["effective"].map { $0.elements }, isHeard: !link.isOverForClient)
        }
      default: break
      }
    }
  }

  /// Returns the change set that was sent in a session by the message with this index.
  func set(_ session: String, _ index: Int) -> SubmittedSet? {
    submissions[Self.key(session, index)]?.set
  }

  private static func key(_ session: String, _ index: Int?) -> String {
    "\(session) \(index ?? -1)"
  }

  /// Takes the server's reply to a submitted change set.
  ///
  /// - Parameters:
  ///   - answers: the answers to the fragments; nil if all are accepted as they are.
  ///   - effective: the fragments that the server says it has applied in place of the submitted ones.
  ///   - isHeard: whether the client still listens on the connection.
  private func decide(
    _ key: String, by index: Int, _ answers: [PlainJSON]?, _ effective: [PlainJSON]?, isHeard: Bool
  ) {
    if let earlier = replies[key] {
      // The same reply, sent again.
      if earlier != index { report(.decidedTwice, "The server has decided message \(key) twice") }
      return
    }
    replies[key] = index
    guard let (set, client, sent) = submissions[key] else {
      return report(.messages, "The server answers message \(key), which no client has sent")
    }
    let answers = answers ?? sent.map { _ in .object([:]) }
    guard answers.count == sent.count else {
      return report(.messages, "The server has answered \(answers.count) fragments of \(set)")
    }
    let verdicts = answers.map { ($0["error"] ?? .null) == .null }
    let causes = answers.map { $0["causedBy"]?.whole }
    for case let cause? in causes where !verdicts.indices.contains(cause) || verdicts[cause] {
      report(.messages, "The server answers \(set) with the cause \(cause), which is none")
    }
    if client.version > 1 {
      for problem in missingCauses(in: answers, to: sent) {
        report(.conflict, "The server answers \(set) \(problem)")
      }
    }
    guard journal != nil else { return accept(set, of: client, sent, verdicts, causes, effective) }
    // The change set has no number, so the journal tells what was accepted, but not from which client.
    if client.version == 1 {
      // The message of a process that has ended may arrive after the server has told the next process of a
      // decision. If the session goes on, the server sends the same reply again, and the client hears it.
      if !isHeard, set.isDecided {
        replies[key] = nil
        return
      }
      for (at, intent) in set.intents.enumerated() where verdicts[at] {
        let uuid = intent.uuid == client.ownRoot ? observer.stream.root : intent.uuid
        intents.forgetUnless(uuid, has: sent[at]["properties"]?.members ?? [:])
      }
      return set.decide(verdicts, losing: losses(of: set, client, verdicts, causes, effective))
    }
    // A frame of an ended process may arrive after the next process has made the server forget the decision.
    let isTooLate = answers.allSatisfy { $0["error"]?["type"]?.text == "set-number-reused" }
    if !isHeard, isTooLate, set.isDecided { return }
    // A server that has forgotten what has come of a call does not begin it again.
    let isForgotten = answers.allSatisfy { $0["error"]?["type"]?.text == "outcome-forgotten" }
    if set.isCall, isForgotten, configuration.limits.mayForget { return }
    // The decision was applied when it was durable, which may be long before the client can be told.
    if set.verdicts != verdicts {
      report(.messages, "The server answers \(set) with something else than what it has decided")
    }
  }

  /// Forgets a decision that is lost with the server's history.
  func forget(_ decision: ScopeRecord.Decision) {
    let sets = clientsByID[decision.client]?.allSets ?? []
    sets.first { $0.set.place + 1 == decision.number }?.set.forget()
  }

  /// Applies a decision of the server that has become durable.
  func accept(_ decision: ScopeRecord.Decision, effective: [SyncFragment]) {
    guard let client = clientsByID[decision.client],
      let (set, _) = client.allSets.first(where: { $0.set.place + 1 == decision.number })
    else { return report(.messages, "The server has decided what no client has sent: \(decision)") }
    var decision = decision
    // No replies stand for the plain acceptance of each fragment.
    if decision.fragmentReplies.isEmpty {
      decision.fragmentReplies = set.sent.map { _ in FragmentReply() }
    }
    if set.isCall { return acceptCall(set, decision, doing: effective) }
    accept(
      set, of: client, set.sent, decision.fragmentReplies.map { $0.error == nil },
      decision.fragmentReplies.map(\.causedBy),
      // The server may apply a part of the steps; it applies values and additions as they were submitted.
      set.hasSteps ? effective.map { PlainJSON($0) } : [])
  }

  private func accept(
    _ set: SubmittedSet, of client: SimulatedClient, _ sent: [PlainJSON], _ verdicts: [Bool],
    _ causes: [Int?], _ effective: [PlainJSON]?
  ) {
    set.decide(verdicts, losing: losses(of: set, client, verdicts, causes, effective))
    note("\(set) is decided: " + verdicts.map { $0 ? "yes" : "no" }.joined(separator: " "))
    guard verdicts.contains(true) else { return }
    if set.isAtomic, !set.losses.isEmpty {
      report(.intent, "The server has done a part of the atomic \(set)")
    }
    if set.acceptances > 1, configuration.promises.contains(.exactlyOnce) {
      report(.decidedTwice, "The server has accepted \(set) \(set.acceptances) times")
    }
    let root = observer.stream.root
    for (at, whole) in set.intents.enumerated() where verdicts[at] {
      var intent = whole
      if let effective {
        intent.leaveOut(what: effective, root: root, ownRoot: client.ownRoot)
        for element in whole.elements.subtracting(intent.elements)
        where !set.moves(element, kinds(of:)) {
          let holder = whole.uuid == client.ownRoot ? root : whole.uuid
          intents.note(leftOut: element, of: holder, by: set)
        }
      }
      intents.accept(
        intent, sent: sent[at]["properties"]?.members ?? [:],
        bases: sent[at]["bases"]?.members ?? [:], of: set,
        name: { $0 == client.ownRoot ? root : $0 }, kinds(of: intent.className))
    }
  }
}

extension SimulationRun {
  /// Returns the parts of a change set without effect: what was rejected, and moves of models that were
  /// elsewhere.
  private func losses(
    of set: SubmittedSet, _ client: SimulatedClient, _ verdicts: [Bool], _ causes: [Int?],
    _ effective: [PlainJSON]?
  ) -> [SubmittedSet.Loss] {
    set.intents.indices.flatMap { at -> [SubmittedSet.Loss] in
      let (whole, isAccepted) = (set.intents[at], verdicts[at])
      func loss(_ property: String?) -> SubmittedSet.Loss {
        SubmittedSet.Loss(
          uuid: whole.uuid, property: property, isRejected: !isAccepted, position: at,
          cause: isAccepted ? nil : causes[at])
      }
      if !isAccepted {
        return whole.isAddition
          ? [loss(nil)] : (Array(whole.values.keys) + Array(whole.operations.keys)).map { loss($0) }
      }
      guard let effective else { return [] }
      var done = whole
      done.leaveOut(what: effective, root: observer.stream.root, ownRoot: client.ownRoot)
      return whole.operations.keys.filter { property in
        whole.elements(of: property).subtracting(done.elements(of: property))
          .contains { set.moves($0, kinds(of:)) }
      }.map { loss($0) }
    }
  }
}

extension SimulationRun {
  /// Returns where the server says that a model is missing which the change set itself adds, without naming the
  /// rejection of that addition as the cause.
  private func missingCauses(in answers: [PlainJSON], to sent: [PlainJSON]) -> [String] {
    let isRejected = answers.map { ($0["error"] ?? .null) != .null }
    return answers.enumerated().compactMap { at, answer in
      guard isRejected[at], answer["causedBy"] == nil,
        let words = answer["error"]?["message"]?.text
      else { return nil }
      let cause = sent.indices.first { other in
        other != at && isRejected[other] && sent[other]["type"]?.text == "add"
          && words.contains("No such ModelObject '\(sent[other]["uuid"]?.text ?? "")'")
      }
      return cause.map { "without saying that fragment \(at) fails because of \($0)" }
    }
  }
}

extension PlainJSON {
  /// The messages of a frame: its elements, or the frame itself if it is a single message.
  var messages: [PlainJSON] {
    if case .array(let elements) = self { return elements }
    // The frame of a channel.
    return self["messages"]?.elements ?? [self]
  }
}

/// Descriptions of frames for the trace.
enum FrameWords {
  static func describe(_ frame: [UInt8]) -> String {
    guard let json = PlainJSON(frame) else { return "what is no JSON" }
    return json.messages.map(describe).joined(separator: ", ")
  }

  private static func describe(_ message: PlainJSON) -> String {
    let type = message["type"]?.text ?? "?"
    let index = message["index"]?.whole ?? -1
    let place = message["sequence"]?.whole.map { " at \($0)" } ?? ""
    let head = (index == 0 ? type : "\(type) \(index)") + place
    switch type {
    case "Ping":
      let asks = message["resendMissing"] == .bool(true) ? " and what is missing" : ""
      let places = ["seen", "told"].flatMap { name in
        (message[name]?.elements ?? []).map { ", \(name) up to \($0["sequence"]?.whole ?? -1)" }
      }
      return "\(head) that has seen \(message["ack"]?.whole ?? -1)\(asks)" + places.joined()
    case "ScopeSync":
      let fragments = message["fragments"]?.elements ?? []
      return "\(head) [" + fragments.map(fragment).joined(separator: "; ") + "]"
    case "ScopeSyncReply":
      let answers = message.fragmentAnswers
      let words =
        message["count"]?.whole.map { ["yes, and to the \($0 - 1) before"] }
        ?? answers.map { $0["error"]?["message"]?.text ?? "yes" }
      return "\(head) to \(message["replyTo"]?.whole ?? -1) [" + words.joined(separator: "; ") + "]"
    case "ScopeState": return "\(head) of \(message["fragments"]?.elements.count ?? 0) models"
    default: return head
    }
  }

  private static func fragment(_ fragment: PlainJSON) -> String {
    let values = (fragment["properties"]?.members ?? [:]).merging(
      fragment["operations"]?.members ?? [:]
    ) { old, _ in old }
    return "\(fragment["type"]?.text ?? "?") \(fragment["clsName"]?.text ?? "?") "
      + "\(fragment["uuid"] ?? .null) \(PlainJSON.object(values))"
  }
}

extension PlainJSON {
  /// The answer of a reply to each fragment: one number accepts all of several.
  fileprivate var fragmentAnswers: [PlainJSON] {
    if let count = self["accepted"]?.whole { return Array(repeating: .object([:]), count: count) }
    return self["fragmentReplies"]?.elements ?? []
  }
}
