import Jetstream

/// Sending what the inputs of a turn have led to.
extension ServerEngine {
  func post(_ session: ServerSession, _ message: Message) {
    session.queue(message)
    waiting.append(session)
  }

  /// Notes that a session has something in its outbox.
  func wait(for session: ServerSession) {
    if waiting.last !== session { waiting.append(session) }
  }

  /// Sends each session the messages of this turn, in as few frames as their size allows, and has done elsewhere what is to
  /// be done there.
  func flush() {
    isHandling = true
    repeat {
      for subscription in work.takeFetched() where subscription.isLive {
        catchUp(subscription.session, on: subscription)
      }
      sendMessages()
    } while !waiting.isEmpty || !hostsWithNews.isEmpty
    isHandling = false
    forgetDate()
    let last = lastActions
    lastActions = []
    for action in last { perform(action) }
  }

  private func sendMessages() {
    tellNews()
    var sessions: [ServerSession] = []
    swap(&sessions, &waiting)
    defer {
      if waiting.isEmpty {
        sessions.removeAll(keepingCapacity: true)
        swap(&sessions, &waiting)
      }
    }
    for session in sessions where !session.link.outbox.isEmpty {
      if endsForOverflow(session) { continue }
      guard let (id, outbox) = session.link.takeOutbox(upTo: session.channel.highestSent) else {
        continue
      }
      for frame in frames(of: outbox) { perform(.send(connections: [id], frame)) }
      sendProbe(session, on: id)
    }
  }

  /// Sends the change sets of this turn to all sessions of version 2 that listen. They go out in front of what is queued
  /// later, and behind what is queued already.
  func tellNews() {
    let hosts = hostsWithNews
    hostsWithNews = []
    for host in hosts {
      measureState(of: host)
      guard let run = host.audience.takeNews() else { continue }
      let end = StreamPlace(run.last, in: host.order.stream)
      var connections: [Int] = []
      for (_, subscription) in host.audience.listeners {
        switch subscription.session.offer(
          run, upTo: end, within: configuration.window, of: subscription)
        {
        case .alone(let connection): connections.append(connection)
        case .queued: wait(for: subscription.session)
        case .refused: break
        }
      }
      if connections.isEmpty { continue }
      for part in run.parts(after: run.start, upTo: run.last) {
        perform(
          .send(
            connections: connections,
            Outgoing.frame(of: [.news(part)], size: part.size, in: configuration.channel)))
      }
    }
  }

  /// Ends a session if too much waits for its client.
  ///
  /// - Returns: true if it was ended.
  @discardableResult
  func endsForOverflow(_ session: ServerSession) -> Bool {
    if session.link.hasEnded { return false }
    if session.channel.isOverflowing || hasMissedTooMuch(session) {
      endWithWarning(session, "too much is not acknowledged")
    } else if session.subscriptions.openFetchCount > configuration.keptLimit.messages {
      endWithWarning(session, "too many fetches are not answered")
    }
    return session.link.hasEnded
  }

  /// Returns whether more waits for a session of version 1 without a connection than may.
  private func hasMissedTooMuch(_ session: ServerSession) -> Bool {
    let limit = configuration.absentLimit
    guard session.link.connection == nil, session.version == 1 else { return false }
    return session.channel.exceeds(limit)
      || session.subscriptions.all.contains { $0.hasMissed(moreThan: limit) }
  }

  /// Returns what goes out in frames of at most about ``Configuration/frameBytes``; mostly that is one frame.
  private func frames(of outbox: [Outgoing]) -> [[UInt8]] {
    let channel = configuration.channel
    if outbox.count == 1 { return [Outgoing.frame(of: outbox[...], in: channel)] }
    var frames: [[UInt8]] = []
    var (start, size) = (0, 0)
    for (at, entry) in outbox.enumerated() {
      let more = entry.roughSize
      if at > start, size + more > configuration.frameBytes {
        frames.append(Outgoing.frame(of: outbox[start..<at], size: size, in: channel))
        (start, size) = (at, 0)
      }
      size += more
    }
    frames.append(Outgoing.frame(of: outbox[start...], size: size, in: channel))
    return frames
  }
}
