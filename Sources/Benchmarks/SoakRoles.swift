import Foundation
import JetstreamServer

/// The role of this program in a process that the suite `soak` has started.
enum SoakRole {
  case serve(folder: String, seed: UInt64)
  case visit(port: UInt16, clients: Int, seconds: Double, seed: UInt64)

  /// The role that a command line names; nil if it names none.
  init?(_ arguments: [String]) {
    switch (arguments.first, arguments.count) {
    case ("--soak-serve", 3):
      guard let seed = UInt64(arguments[2]) else { return nil }
      self = .serve(folder: arguments[1], seed: seed)
    case ("--soak-visit", 5):
      guard let port = UInt16(arguments[1]), let clients = Int(arguments[2]),
        let seconds = Double(arguments[3]), let seed = UInt64(arguments[4])
      else { return nil }
      self = .visit(port: port, clients: clients, seconds: seconds, seed: seed)
    default: return nil
    }
  }

  /// Plays the role until its end, or that of the process.
  func play() {
    RoleLines.raiseDescriptorLimit()
    if case .serve = self { ProcessMemory.limitArenas() }
    Task {
      do {
        switch self {
        case .serve(let folder, let seed): try await SoakServer().run(folder, seed: seed)
        case .visit(let port, let clients, let seconds, let seed):
          await SoakCrowd(port: port, clients: clients, seed: seed).run(seconds)
        }
      } catch {
        RoleLines.say("\(error)")
      }
      exit(0)
    }
    dispatchMain()
  }
}

/// The clients of a soak.
@MainActor
private final class SoakCrowd {
  private let visitors: [SoakVisitor]

  init(port: UInt16, clients: Int, seed: UInt64) {
    var dice = SoakDice(seed: seed)
    visitors = (0..<clients).map {
      SoakVisitor(url: "ws://127.0.0.1:\(port)", user: $0, seed: dice.next())
    }
  }

  /// Lets the clients use the server, compares them with it when told to, and lets every other one end its session: the
  /// others' connections break when the process ends.
  func run(_ seconds: Double) async {
    let clock = ContinuousClock()
    let start = clock.now
    let end = start + .seconds(seconds)
    let arrival = Duration.seconds(min(10, seconds / 10))
    let visits = visitors.enumerated().map { number, visitor in
      Task {
        try? await clock.sleep(until: start + arrival * number / visitors.count)
        await visitor.run(until: end)
      }
    }
    for visit in visits { await visit.value }
    RoleLines.say("done")
    for await line in RoleLines.commands() {
      if line == "leave" {
        for (number, visitor) in visitors.enumerated() where number % 2 == 0 { visitor.close() }
        RoleLines.say("left")
      } else {
        let digests = line.split(separator: " ")
        let standing = visitors.reduce(SoakVisitor.Standing()) { $0 + $1.compare(with: digests) }
        RoleLines.say("\(standing.replicas) \(standing.differing) \(standing.unreleased)")
      }
    }
  }
}
