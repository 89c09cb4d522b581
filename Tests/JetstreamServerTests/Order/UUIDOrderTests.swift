import Foundation
import Testing

@testable import JetstreamServer

@Suite("The order of models by UUID")
struct UUIDOrderTests {
  @Test("It is that of the UUIDs, whatever their bytes")
  func order() {
    var uuids = (0..<500).map { _ in UUID() }
    // Those that differ in one byte only, and the least and the greatest.
    for place in 0..<16 {
      for byte in [0, 1, 127, 128, 255] {
        var text = Array(repeating: "80", count: 16)
        text[place] = String(format: "%02x", byte)
        let joined = text.joined()
        let parts = [8, 4, 4, 4, 12].reduce(into: (at: joined.startIndex, parts: [Substring]())) {
          let end = joined.index($0.at, offsetBy: $1)
          $0.parts.append(joined[$0.at..<end])
          $0.at = end
        }.parts
        uuids.append(UUID(uuidString: parts.joined(separator: "-"))!)
      }
    }
    uuids = Array(Set(uuids)).shuffled()
    #expect(uuids.sorted(byUUID: \.self) == uuids.sorted())
    #expect([UUID]().sorted(byUUID: \.self).isEmpty)
  }
}
