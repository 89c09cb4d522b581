import Jetstream

/// The replies to the change sets of a session's client.
extension ServerSession {
  /// Answers a change set. The reply comes behind everything that precedes the change set in the scope's order, or at
  /// once if the client does not want to be sent that, and not behind what it has asked for in the same turn.
  func answer(_ reply: ScopeSyncReply, after sequence: Int, of subscription: Subscription) {
    if version == 1 {
      subscription.sent.append((queue(.scopeSyncReply(reply)), sequence))
      return
    }
    if subscription.limit != nil, subscription.untoldState == nil, !subscription.awaitsCatchUp {
      queue(.scopeSyncReply(reply.omittingEffect(upTo: subscription.told)))
      return
    }
    if !link.isOpen { subscription.fallBehind() }
    tellNews(upTo: reply.sequence.map { $0 - 1 } ?? sequence, of: subscription)
    if subscription.isBehind {
      subscription.later.append((sequence, reply))
    } else {
      tell(reply, of: subscription)
    }
  }

  /// Answers a change set that was accepted as it is with the reply to the one before, if that is the last message of this
  /// turn, and nothing comes between the two.
  ///
  /// - Returns: false, having done nothing, if the change set needs a reply of its own.
  func accept(_ messageIndex: Int, at sequence: Int, of subscription: Subscription) -> Bool {
    guard version > 1, subscription.told == sequence - 1, !subscription.isBehind,
      subscription.limit == nil, link.isOpen,
      // A client may acknowledge what it was not sent yet.
      channel.highestAcknowledged < channel.highestSent,
      let reply = link.accept(messageIndex, at: sequence)
    else { return false }
    channel.replaceLast(with: reply)
    subscription.tell(upTo: sequence)
    return true
  }

  /// Sends the replies that have waited for change sets that are not sent any more.
  func answerRest(of subscription: Subscription) {
    for (_, reply) in subscription.later {
      queue(.scopeSyncReply(reply.omittingEffect(upTo: subscription.told)))
    }
    subscription.later = []
    subscription.catchUp()
  }

  func tell(_ reply: ScopeSyncReply, of subscription: Subscription) {
    let reply = reply.omittingEffect(upTo: subscription.told)
    queue(.scopeSyncReply(reply))
    if let own = reply.sequence { subscription.tell(upTo: own) }
  }
}

extension ScopeSyncReply {
  /// Returns the reply without the sequence and the effect of the change set, if a client has been told these before:
  /// with the stream up to a sequence, or with a state. It would apply them over what has come since.
  fileprivate func omittingEffect(upTo told: Int) -> ScopeSyncReply {
    guard let sequence, sequence <= told else { return self }
    return withoutEffect()
  }
}
