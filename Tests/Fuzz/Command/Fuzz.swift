import Foundation
import FuzzDriver
import FuzzTargets

/// libFuzzer with one of the targets. Built on demand by `.ci/fuzz`, which says how.
@main
enum Fuzz {
  static func main() throws {
    let arguments = CommandLine.arguments
    guard arguments.count > 1 else {
      print(FuzzTarget.all.map(\.name).joined(separator: "\n"))
      return
    }
    guard let target = FuzzTarget.all.first(where: { $0.name == arguments[1] }) else {
      FileHandle.standardError.write(Data("fuzz: there is no target \"\(arguments[1])\".\n".utf8))
      exit(2)
    }
    if arguments.count == 4, arguments[2] == "--prepare" {
      return try prepare(target, in: URL(filePath: arguments[3], directoryHint: .isDirectory))
    }
    run(target, [arguments[0]] + arguments[2...])
  }

  /// Writes the target's seeds into a folder `seeds`, and its words into a file `words`.
  private static func prepare(_ target: FuzzTarget, in folder: URL) throws {
    let seeds = folder.appending(path: "seeds", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: seeds, withIntermediateDirectories: true)
    for (place, seed) in target.seeds.enumerated() {
      try Data(seed).write(to: seeds.appending(path: "seed-\(place)"))
    }
    let lines = target.words.map { word in
      "\"" + word.map { String(format: "\\x%02x", $0) }.joined() + "\"\n"
    }
    try Data(lines.joined().utf8).write(to: folder.appending(path: "words"))
  }

  /// The target under way. Set once, before libFuzzer starts; it calls back on this very thread.
  nonisolated(unsafe) private static var target: FuzzTarget?

  private static func run(_ target: FuzzTarget, _ arguments: [String]) {
    self.target = target
    var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
    var count = CInt(arguments.count)
    let status = words.withUnsafeMutableBufferPointer { buffer in
      var start = buffer.baseAddress
      return LLVMFuzzerRunDriver(&count, &start) { bytes, count in
        do {
          try Fuzz.target?.check(Array(UnsafeBufferPointer(start: bytes, count: count)))
        } catch {
          // libFuzzer keeps the input of a process that ends like this.
          fatalError("\(error)")
        }
        return 0
      }
    }
    exit(status)
  }
}
