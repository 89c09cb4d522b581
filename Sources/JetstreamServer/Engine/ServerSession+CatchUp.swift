import Foundation
import Jetstream

/// The change sets that a session which was behind is sent from the streams of its scopes.
extension ServerSession {
  /// Continues to send the change sets that have waited, as far as there is room.
  ///
  /// Change sets of other clients, with no reply between them, come in groups; see ``CatchUpGroup``. The client's own come
  /// one by one and whole: the client takes what they have led to from them.
  ///
  /// - Parameters:
  ///   - items: all change sets after the last that the session was sent.
  ///   - last: the sequence of the last of them that may be sent.
  ///   - window: the amount that may be sent before the client acknowledges it.
  func catchUp(
    _ items: ArraySlice<StreamItem>, upTo last: Int, within window: ScopeStream.Limit,
    of subscription: Subscription
  ) {
    let client = subscription.client
    var rest = items
    while let item = rest.first, item.sequence <= last {
      answerLater(before: item.sequence, of: subscription)
      guard hasRoom(for: subscription, within: window) else { return }
      if let next = subscription.later.first?.reply, next.sequence == item.sequence {
        // It may have waited for what came behind its change set, too.
        subscription.later.removeFirst()
        tell(next, of: subscription)
        rest.removeFirst()
      } else if client != nil, item.author?.client == client {
        let isDecided = item.sequence <= subscription.ownUpTo
        tell(item, of: subscription, asOwn: isDecided ? item.author?.number : nil)
        rest.removeFirst()
      } else {
        let group = group(from: rest, upTo: last, within: window, of: subscription)
        tell(group, within: window, of: subscription)
        rest.removeFirst(group.count)
      }
    }
    // A client that wants no later change sets is answered at once.
    answerLater(before: subscription.limit == nil ? last + 1 : .max, of: subscription)
    subscription.catchUp()
  }

  /// Returns the group that begins with the first of `items`: up to the next change set of the client's own, the next
  /// reply, and what there is room for.
  private func group(
    from items: ArraySlice<StreamItem>, upTo last: Int, within window: ScopeStream.Limit,
    of subscription: Subscription
  ) -> CatchUpGroup {
    let (host, client, next) = (subscription.host, subscription.client, subscription.later.first)
    let told = items[items.startIndex].sequence - 1
    let room = StreamAmount(
      sets: window.sets - subscription.waiting.sets,
      bytes: window.bytes - subscription.waiting.bytes)
    // Of a client that does not number its change sets, it is not known which are its own.
    let own = { client.map { host.order.stream.lastSequence(by: $0, upTo: told) } ?? told }
    var group = CatchUpGroup(room: room, own: own) { host.content.schema(of: $0) }
    for item in items {
      guard item.sequence <= last, client == nil || item.author?.client != client else { break }
      if let next, next.after < item.sequence || next.reply.sequence == item.sequence { break }
      guard group.append(item) else { break }
    }
    return group
  }

  /// Sends a group in one frame, or its change sets whole if a frame would be too large for a client.
  private func tell(
    _ group: CatchUpGroup, within window: ScopeStream.Limit, of subscription: Subscription
  ) {
    if group.isReduced {
      var text: [UInt8] = []
      for message in group.messages(scopeIndex: subscription.index) {
        if !text.isEmpty { text.append(UInt8(ascii: ",")) }
        message.write(to: &text)
      }
      // Text with many escapes takes several times the approximate size.
      if text.count <= 2 * window.bytes {
        subscription.tell(upTo: group.last, sent: text.count)
        return link.put(text: text)
      }
    }
    for item in group.items { tell(item, of: subscription) }
  }

  /// Sends the replies that have waited for the change sets before a sequence.
  private func answerLater(before sequence: Int, of subscription: Subscription) {
    let due = subscription.later.prefix { $0.after < sequence }
    if due.isEmpty { return }
    subscription.later.removeFirst(due.count)
    for (_, reply) in due { tell(reply, of: subscription) }
  }
}
