import Foundation

/// The contents of a row's properties as they stand in memory: a tag for each, then 16 bytes for each.
///
/// An array of ``RowContent`` would take 24 bytes for each: the longest payloads have 16 bytes, and the tag, which needs
/// one, is padded to eight. Here the tags of up to six properties fit between the parts of the row and the payloads.
///
/// It is a view of memory that a ``Row`` owns, made for one access. The row has allocated ``size(of:behind:)`` bytes, makes
/// each slot once with ``initialize(_:to:)`` before anything else, and ends each one with ``deinitialize(_:)``. In between,
/// the tag of a slot always names the type of the value that its payload holds, so that each payload is read and released
/// as the type as which it was written.
struct RowSlots {
  /// The type and the case of a content; a case without a payload needs nothing else.
  private enum Tag: UInt8 {
    case null, `false`, `true`, integer, unsigned, double, float, string, array, object
    case noModel, reference, collection, dictionary
  }

  /// A `String`, a `JSONObject` or a `UUID`; all other payloads are shorter. None is aligned to more than eight bytes.
  private static let payloadSize = 16

  private let tags: UnsafeMutablePointer<UInt8>
  private let payloads: UnsafeMutableRawPointer

  /// The slots of `count` properties at an address.
  init(_ start: UnsafeMutablePointer<UInt8>, of count: Int) {
    tags = start
    payloads = UnsafeMutableRawPointer(start + count).alignedUp(toMultipleOf: 8)
  }

  /// Returns the bytes that the slots of `count` properties need.
  ///
  /// - Parameter offset: The distance of the first tag from an address that is aligned to eight bytes; nil if it is not
  ///   known.
  static func size(of count: Int, behind offset: Int?) -> Int {
    let padding = offset.map { -($0 + count) & 7 } ?? 7
    return count + padding + count * payloadSize
  }

  /// Returns true if the slots of `count` properties need no more bytes than `size`, and no payload does.
  func fit(_ size: Int, of count: Int) -> Bool {
    payloads + count * Self.payloadSize <= UnsafeMutableRawPointer(tags) + size
      && MemoryLayout<String>.size <= Self.payloadSize
      && MemoryLayout<[JSONValue]>.size <= Self.payloadSize
      && MemoryLayout<JSONObject>.size <= Self.payloadSize
      && MemoryLayout<CollectionContent>.size <= Self.payloadSize
      && MemoryLayout<DictionaryContent>.size <= Self.payloadSize
      && MemoryLayout<UUID>.size <= Self.payloadSize
  }

  // MARK: Access

  /// Returns a content.
  func read(_ index: Int) -> RowContent {
    let at = payload(index)
    return switch tag(index) {
    case .null: .value(.null)
    case .false: .value(.bool(false))
    case .true: .value(.bool(true))
    case .integer: .value(.integer(at.load(as: Int64.self)))
    case .unsigned: .value(.unsigned(at.load(as: UInt64.self)))
    case .double: .value(.double(at.load(as: Double.self)))
    case .float: .value(.float(at.load(as: Float.self)))
    case .string: .value(.string(at.assumingMemoryBound(to: String.self).pointee))
    case .array: .value(.array(at.assumingMemoryBound(to: [JSONValue].self).pointee))
    case .object: .value(.object(at.assumingMemoryBound(to: JSONObject.self).pointee))
    case .noModel: .reference(nil)
    case .reference: .reference(at.load(as: UUID.self))
    case .collection:
      .collection(at.assumingMemoryBound(to: CollectionContent.self).pointee)
    case .dictionary:
      .dictionary(at.assumingMemoryBound(to: DictionaryContent.self).pointee)
    }
  }

  /// Replaces a content.
  func write(_ index: Int, _ content: RowContent) {
    deinitialize(index)
    initialize(index, to: content)
  }

  /// Calls `body` with a dictionary where it stands in memory, so that a change of an entry copies nothing.
  @inline(__always)
  func withDictionary<Result>(
    _ index: Int, _ body: (inout DictionaryContent) -> Result
  ) -> Result {
    precondition(tag(index) == .dictionary, "The entry is not one of a dictionary of this class.")
    return body(&payload(index).assumingMemoryBound(to: DictionaryContent.self).pointee)
  }

  /// Calls `body` with a collection where it stands in memory, so that an operation copies no other elements.
  @inline(__always)
  func withCollection<Result>(
    _ index: Int, _ body: (inout CollectionContent) -> Result
  ) -> Result {
    precondition(tag(index) == .collection, "The property is no collection of this class.")
    return body(&payload(index).assumingMemoryBound(to: CollectionContent.self).pointee)
  }

  /// Gives a slot that has none its content.
  func initialize(_ index: Int, to content: RowContent) {
    let at = payload(index)
    let tag: Tag
    switch content {
    case .value(.null): tag = .null
    case .value(.bool(let value)): tag = value ? .true : .false
    case .value(.integer(let value)):
      at.storeBytes(of: value, as: Int64.self)
      tag = .integer
    case .value(.unsigned(let value)):
      at.storeBytes(of: value, as: UInt64.self)
      tag = .unsigned
    case .value(.double(let value)):
      at.storeBytes(of: value, as: Double.self)
      tag = .double
    case .value(.float(let value)):
      at.storeBytes(of: value, as: Float.self)
      tag = .float
    case .value(.string(let value)):
      at.initializeMemory(as: String.self, to: value)
      tag = .string
    case .value(.array(let value)):
      at.initializeMemory(as: [JSONValue].self, to: value)
      tag = .array
    case .value(.object(let value)):
      at.initializeMemory(as: JSONObject.self, to: value)
      tag = .object
    case .reference(nil): tag = .noModel
    case .reference(let uuid?):
      at.storeBytes(of: uuid, as: UUID.self)
      tag = .reference
    case .collection(let value):
      at.initializeMemory(as: CollectionContent.self, to: value)
      tag = .collection
    case .dictionary(let value):
      at.initializeMemory(as: DictionaryContent.self, to: value)
      tag = .dictionary
    }
    (tags + index).initialize(to: tag.rawValue)
  }

  /// Releases a content; the slot has none then.
  func deinitialize(_ index: Int) {
    let at = payload(index)
    switch tag(index) {
    case .null, .false, .true, .integer, .unsigned, .double, .float, .noModel, .reference: break
    case .string: at.assumingMemoryBound(to: String.self).deinitialize(count: 1)
    case .array: at.assumingMemoryBound(to: [JSONValue].self).deinitialize(count: 1)
    case .object: at.assumingMemoryBound(to: JSONObject.self).deinitialize(count: 1)
    case .collection: at.assumingMemoryBound(to: CollectionContent.self).deinitialize(count: 1)
    case .dictionary: at.assumingMemoryBound(to: DictionaryContent.self).deinitialize(count: 1)
    }
  }

  @inline(__always)
  private func tag(_ index: Int) -> Tag {
    // Only `initialize` writes tags.
    Tag(rawValue: tags[index])!
  }

  @inline(__always)
  private func payload(_ index: Int) -> UnsafeMutableRawPointer {
    payloads + index * Self.payloadSize
  }
}
