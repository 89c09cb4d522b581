import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

@Suite("The table of limits in the guide")
struct LimitTableTests {
  /// The columns of each row of the guide's table.
  private func rows() throws -> [[String]] {
    let guide = URL(filePath: #filePath).appending(
      path: "../../../../Sources/Jetstream/Jetstream.docc/RunningAServer.md")
    let text = try String(contentsOf: guide.standardized, encoding: .utf8)
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    let start = try #require(lines.firstIndex { $0.hasPrefix("| limit | default | error |") })
    return lines[(start + 2)...].prefix { $0.hasPrefix("|") }.map { line in
      line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
    }
  }

  private func written(_ limit: Int?, _ name: String) -> String {
    guard let limit else { return "none" }
    if !name.lowercased().contains("bytes") {
      return limit.formatted(.number.locale(Locale(identifier: "en_US")))
    }
    return limit >= 1 << 30 ? "\(limit >> 30) GiB" : "\(limit >> 20) MiB"
  }

  @Test("It has each limit once, in the order of the code, with its default and its error")
  func table() throws {
    let values = Mirror(reflecting: ServerLimits()).children.map {
      (name: $0.label ?? "", value: $0.value as? Int)
    }
    #expect(values.map(\.name) == ServerLimit.allCases.map(\.rawValue))
    let rows = try rows()
    #expect(rows.map(\.count) == values.map { _ in 4 })
    for (row, (name, value)) in zip(rows, values) {
      let limit = try #require(ServerLimit(rawValue: name))
      let error = limit.error?.type.map { "`\($0)`" } ?? "none"
      #expect(row[..<3] == ["`\(name)`", written(value, name), error])
    }
  }

  @Test("The error of a limit fits into a close frame")
  func closeReasons() throws {
    // As long as a peer may make it, and with characters that take several bytes and escapes.
    for character in ["a", "é", "\"", "\u{1}", "👨‍👩‍👧‍👦"] {
      let long = String(repeating: character, count: 1_000_000)
      let reason = CloseReason.text(WireError(message: long, type: "x"))
      let error = try WireError(json: JSONValue(parsing: reason))
      #expect(reason.utf8.count <= 123 && error.type == "x" && !error.message.isEmpty)
      #expect(long.hasPrefix(String(error.message.prefix(1))))
      #expect((1...123).contains(CloseReason.plain(long).utf8.count))
    }
    for limit in ServerLimit.allCases {
      guard let error = limit.error else { continue }
      let reason = CloseReason.text(error)
      #expect(reason.utf8.count <= 123 && reason == error.json.text, "\(limit)")
    }
  }
}
