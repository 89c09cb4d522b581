/// How a property takes part in sync, given where it is declared.
///
/// ```swift
/// @Property(.local) var isSelected = false
/// ```
public struct PropertyOptions: OptionSet, Sendable {
  /// The options as bits.
  public let rawValue: UInt8

  /// Makes options from bits.
  @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// The property is observed, but never leaves the process: it is not in fragments, and incoming
  /// fragments that name it change nothing.
  @inlinable public static var local: PropertyOptions { PropertyOptions(rawValue: 1) }
}
