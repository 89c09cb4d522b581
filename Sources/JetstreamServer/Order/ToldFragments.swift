import Foundation
import Jetstream

/// The fragments of a change set as they are to be told, which are known before it is applied but for some, and their text.
struct ToldFragments {
  private(set) var fragments: [SyncFragment] = []
  /// The indices of those that are known once the change set was applied. Until then they stand as they were judged.
  private(set) var open: [Int] = []
  /// True if all equal the submitted ones to the letter, as far as they are known.
  private(set) var isUnchanged: Bool
  /// True if they have the same text, too, as far as they are known.
  private(set) var hasSameText: Bool
  /// The submitted fragments, and the positions among them of those that are told.
  private let (submitted, positions): ([SyncFragment], [Int])
  private let hasSubmittedText: Bool
  /// True if a fragment that is known later may have another text although it equals the one that was judged.
  private var hasUnsureText = false
  private var bytes: [UInt8] = []
  /// The approximate size of the text.
  private var size = 0

  init(of draft: ScopeOrder.Draft, _ submitted: [SyncFragment], as text: FragmentsText?) {
    (self.submitted, positions) = (submitted, draft.positions)
    // Lost moves may have left nothing of a fragment.
    isUnchanged = draft.accepted.count == draft.positions.count
    hasSameText = draft.positions.count == submitted.count
    hasSubmittedText = text != nil
    fragments.reserveCapacity(draft.positions.count)
  }

  /// Returns the submitted fragment that the fragment at an index comes from.
  func submitted(_ at: Int) -> SyncFragment { submitted[positions[at]] }

  /// Appends a fragment that is known.
  mutating func append(_ fragment: SyncFragment) {
    compare(fragment, fragments.count)
    size += fragment.roughSize
    fragments.append(fragment)
  }

  /// Appends a fragment that is known later, as it was judged.
  mutating func appendOpen(_ fragment: SyncFragment, className: String) {
    open.append(fragments.count)
    size += fragment.roughSize
    let judged = SyncFragment(
      fragment.kind, uuid: fragment.uuid, className: className,
      properties: fragment.properties, operations: fragment.operations)
    if !judged.hasSameText(as: judged) { hasUnsureText = true }
    fragments.append(judged)
  }

  /// Sets a fragment that was not known. If it is another one than was judged, the text is of no use.
  mutating func set(_ fragment: SyncFragment, _ at: Int) {
    compare(fragment, at)
    if !bytes.isEmpty,
      !fragment.isSame(as: fragments[at]) || !fragment.hasSameText(as: fragments[at])
    {
      bytes = []
    }
    fragments[at] = fragment
  }

  private mutating func compare(_ fragment: SyncFragment, _ at: Int) {
    guard isUnchanged else { return }
    let submitted = submitted
    let sent = submitted.span
    isUnchanged = fragment.isSame(as: sent[positions[at]])
    if hasSameText { hasSameText = fragment.hasSameText(as: sent[positions[at]]) }
  }

  // MARK: Text

  /// True if the text is to be written. It is not if the submitted text is that of the fragments, as far as they are known, or if
  /// most fragments are known later: each of them would have to be compared with the one that was judged.
  var needsText: Bool {
    !(isUnchanged && hasSameText && hasSubmittedText) && !hasUnsureText
      && open.count <= fragments.count / 2
  }

  /// Writes the text of a part of the fragments. Each part begins where the last one ended.
  mutating func write(_ part: Range<Int>) {
    if bytes.isEmpty {
      bytes.reserveCapacity(size)
      bytes.append(UInt8(ascii: "["))
    }
    let all = fragments
    let fragments = all.span
    for at in part {
      if at > 0 { bytes.append(UInt8(ascii: ",")) }
      fragments[at].write(to: &bytes)
    }
    if part.upperBound == all.count { bytes.append(UInt8(ascii: "]")) }
  }

  /// The text of the fragments; nil if it was not written, or if they have turned out to be others.
  var text: FragmentsText? { bytes.isEmpty ? nil : FragmentsText(writtenAs: bytes) }
}
