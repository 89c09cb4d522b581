import Foundation
import Jetstream

/// Clients that are better off with the full state than with the change sets that they have missed.
extension ScopeOrder {
  /// Returns true if a client that is sent the last items of the stream takes in more than with the full state.
  ///
  /// It is sent them without the values that later ones replace, so that what is left of them counts. Cost: O(1) if they
  /// are less than the state as they are; otherwise O(number of items).
  func isStateLess(than items: ArraySlice<StreamItem>, for client: UUID?) -> Bool {
    guard let worth = stream.bytesWorthState, isMore(items, than: worth) else { return false }
    return bytesLeft(of: items, for: client) > worth
  }

  /// Returns true if the last items of the stream, as they are, have more bytes than that.
  ///
  /// - Parameter ignored: the size of all change sets in front of those that count.
  func isMore(_ items: ArraySlice<StreamItem>, than bytes: Int, behind ignored: Int = 0) -> Bool {
    guard let first = items.first else { return false }
    let start = stream.totalBytes(upTo: first.sequence - 1)
    return stream.totalBytes - max(start, ignored) > bytes
  }

  /// Returns the approximate size of what a client is sent of items.
  private func bytesLeft(of items: ArraySlice<StreamItem>, for client: UUID?) -> Int {
    func group() -> CatchUpGroup {
      // The few values that stay for conflicts do not count.
      CatchUpGroup(room: StreamAmount(sets: .max, bytes: .max), own: { 0 }) { [content] in
        content.schema(of: $0)
      }
    }
    var (current, bytes) = (group(), 0)
    for item in items {
      if client == nil || item.author?.client != client {
        _ = current.append(item)
      } else {
        // Its own come whole, and end a group.
        bytes += current.bytes + item.roughSize
        current = group()
      }
    }
    return bytes + current.bytes
  }
}
