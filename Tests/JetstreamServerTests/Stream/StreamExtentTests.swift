import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// A scope keeps change sets for clients that come back in proportion to its full state.
@Suite("The amount of change sets that a scope keeps", .paced)
struct StreamExtentTests {
  private static let kilobyte = 1 << 10
  private static let megabyte = 1 << 20

  private let world = InMemoryWorld()

  private static func text(_ number: Int, _ bytes: Int) -> String {
    "\(number) " + String(repeating: "x", count: bytes)
  }

  /// Makes change sets of so many bytes, of which each replaces the one before.
  private func overwrite(_ count: Int, bytes: Int) {
    for number in 0..<count {
      world.canvas.name = Self.text(number, bytes)
      world.scope.flush()
    }
  }

  private func addShapes(_ count: Int, bytes: Int) {
    for number in 0..<count {
      let shape = Shape()
      shape.label = Self.text(number, bytes)
      world.canvas.shapes.append(shape)
      world.scope.flush()
    }
  }

  private var kept: Int { world.server.streamBytes(of: world.scope) ?? 0 }

  @Test("A small scope that is overwritten all the time keeps 256 KiB, at most twice as much")
  func smallScope() {
    let (least, set) = (256 * Self.kilobyte, 10 * Self.kilobyte)
    for _ in 0..<40 {
      overwrite(25, bytes: set)
      #expect(kept >= 20 * set && kept <= 2 * least + 2 * set)
    }
    #expect(kept >= least - 2 * set)
  }

  @Test("A scope of 1 MiB keeps twice as much, at most four times")
  func mediumScope() {
    addShapes(10, bytes: Self.megabyte / 10)
    overwrite(100, bytes: Self.megabyte / 10)
    #expect(kept >= 2 * Self.megabyte && kept <= 5 * Self.megabyte)
  }

  @Test("A large scope keeps 16 MiB; once most of it is gone, it keeps as much as a small one")
  func largeScope() {
    addShapes(9, bytes: Self.megabyte)
    overwrite(40, bytes: Self.megabyte)
    #expect(kept >= 15 * Self.megabyte && kept <= 33 * Self.megabyte)
    world.canvas.shapes.removeAll()
    overwrite(40, bytes: Self.megabyte)
    #expect(kept <= 5 * Self.megabyte)
  }

  @Test("A scope that goes on from a log of many large records keeps what its state is worth")
  func restored() throws {
    let state = world.scope.sharedState()
    var history = ScopeHistory(epoch: "e", sequence: 0, state: state, clients: [:])
    history.records = (1...100).map { number in
      ScopeRecord(
        sequence: number,
        fragments: [
          SyncFragment(
            .change, uuid: world.canvas.uuid, className: "Canvas",
            properties: ["name": .string(Self.text(number, 100 * Self.kilobyte))])
        ])
    }
    try world.server.host(world.scope, history: history) { _ in }
    #expect(world.canvas.name?.hasPrefix("100 ") == true)
    #expect(kept >= 100 * Self.kilobyte && kept <= 600 * Self.kilobyte)
    #expect(world.server.checkInvariants() == [])
  }

  @Test("The state is measured a part at a time: known and unknown models, each once")
  func measuredInParts() throws {
    let world = InMemoryWorld(unknown: .keep)
    for number in 0..<50 {
      let shape = Shape()
      shape.parts.append(Shape())
      shape.label = "\(number)"
      world.canvas.shapes.append(shape)
    }
    world.scope.flush()
    let ghost = UUID()
    RawPeer.joined(world, protocol: 2).submit([
      SyncFragment(
        .change, uuid: world.canvas.uuid, className: "Canvas",
        properties: ["ghost": .string(ghost.wireText)]),
      SyncFragment(.add, uuid: ghost, className: "Ghost", properties: ["fright": 7]),
    ])
    let content = try #require(world.server.hosts.values.first?.content)
    #expect(content.unknownModelUUIDs() == [ghost])
    let state = content.sharedState()
    let size = state.reduce(0) { $0 + $1.roughSize }
    var measured = StateSize(.init(sets: 10, bytes: 1 << 20, leastBytes: 1000))
    var (grown, turns) = (0, 0)
    #expect(!measured.isDue(at: 200) && measured.isDue(at: 300))
    repeat {
      (grown, turns) = (grown + 250, turns + 1)
      #expect(measured.bytes == nil && measured.isDue(at: grown))
    } while !measured.measure(content, at: grown)
    #expect(measured.bytes == size && turns > 10)
    #expect(!measured.isDue(at: grown + 2 * size - 1) && measured.isDue(at: grown + 2 * size))
    // A state that is larger than any stream is not read further.
    var large = StateSize(.init(sets: 10, bytes: size / 2, leastBytes: 1_000))
    let all = turns
    (grown, turns) = (0, 0)
    repeat { (grown, turns) = (grown + 250, turns + 1) } while !large.measure(content, at: grown)
    #expect(large.bytes == nil && turns < all)
  }

  @Test("A model that many hold is measured once, also if it holds those that hold it")
  func measuredOnce() throws {
    let world = InMemoryWorld()
    let shared = Shape()
    shared.label = Self.text(0, 5_000)
    for number in 0..<100 {
      let shape = Shape()
      shape.label = "\(number)"
      shape.parts.append(shared)
      world.canvas.shapes.append(shape)
    }
    shared.parts.append(world.canvas.shapes[0])
    world.scope.flush()
    let content = world.server.hostedScope(world.scope).content
    let size = content.sharedState().reduce(0) { $0 + $1.roughSize }
    var measured = StateSize(.init(sets: 10, bytes: 1 << 20, leastBytes: 1_000))
    var grown = 0
    repeat { grown += 250 } while !measured.measure(content, at: grown) && grown < 1 << 20
    #expect(measured.bytes == size)
    #expect(abs(measured.estimate(of: 102) - size) < 102)
  }
}
