/// A colour of four 8-bit channels, sent as one unsigned 32-bit integer `0xRRGGBBAA`.
public struct RGBAColor: Sendable, Hashable, CustomStringConvertible {
  /// The channels as `0xRRGGBBAA`.
  public var rgba: UInt32

  /// Makes a colour from `0xRRGGBBAA`.
  public init(rgba: UInt32) { self.rgba = rgba }

  /// Makes a colour from its channels, 0 to 255 each.
  public init(red: UInt8, green: UInt8, blue: UInt8, alpha: UInt8 = 255) {
    rgba = UInt32(red) << 24 | UInt32(green) << 16 | UInt32(blue) << 8 | UInt32(alpha)
  }

  /// The red channel, 0 to 255.
  public var red: UInt8 { UInt8(truncatingIfNeeded: rgba >> 24) }
  /// The green channel, 0 to 255.
  public var green: UInt8 { UInt8(truncatingIfNeeded: rgba >> 16) }
  /// The blue channel, 0 to 255.
  public var blue: UInt8 { UInt8(truncatingIfNeeded: rgba >> 8) }
  /// The opacity, 0 to 255.
  public var alpha: UInt8 { UInt8(truncatingIfNeeded: rgba) }

  /// The colour as `#rrggbbaa`.
  public var description: String {
    let digits = String(rgba, radix: 16)
    return "#" + String(repeating: "0", count: 8 - digits.count) + digits
  }

  /// Opaque black.
  package static let black = RGBAColor(rgba: 0x0000_00FF)
  /// Opaque white.
  package static let white = RGBAColor(rgba: 0xFFFF_FFFF)
  /// Opaque red.
  package static let red = RGBAColor(rgba: 0xFF00_00FF)
  /// Opaque green.
  package static let green = RGBAColor(rgba: 0x00FF_00FF)
  /// Opaque blue.
  package static let blue = RGBAColor(rgba: 0x0000_FFFF)
}
