// swift-tools-version: 6.2
import PackageDescription

/// Every Swift target is built alike: Swift 6 mode (the default of these tools) and async
/// functions that stay on their caller's actor.
let settings: [SwiftSetting] = [
  .enableUpcomingFeature("NonisolatedNonsendingByDefault")
]

let package = Package(
  name: "jetstream",
  platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
  products: [
    .library(name: "Jetstream", targets: ["Jetstream"]),
    .library(name: "JetstreamServer", targets: ["JetstreamServer"]),
    .library(name: "JetstreamWebSocket", targets: ["JetstreamWebSocket"]),
    .library(name: "JetstreamSimulation", targets: ["JetstreamSimulation"]),
    .executable(name: "simulate", targets: ["Simulate"]),
    .executable(name: "benchmarks", targets: ["Benchmarks"]),
    .executable(name: "shapes", targets: ["shapes"]),
    .executable(name: "catalogue", targets: ["catalogue"]),
    .executable(name: "chat", targets: ["chat"]),
    .executable(name: "checkout", targets: ["checkout"]),
    .executable(name: "jetstream", targets: ["JetstreamTool"]),
  ],
  targets: [
    .target(name: "CEventLoop"),
    .target(name: "CJetstream"),
    .target(name: "JetstreamDocument", swiftSettings: settings),
    // The lock of builds for the thread sanitizer; empty in all others.
    .target(name: "JetstreamMutex", swiftSettings: settings),
    .target(
      name: "JetstreamWebSocket", dependencies: ["CEventLoop", "JetstreamMutex"],
      swiftSettings: settings),
    .target(
      name: "Jetstream",
      dependencies: ["CJetstream", "JetstreamDocument", "JetstreamMutex", "JetstreamWebSocket"],
      swiftSettings: settings),
    .target(
      name: "JetstreamServer",
      dependencies: ["Jetstream", "JetstreamMutex", "JetstreamWebSocket"],
      swiftSettings: settings),
    .target(
      name: "JetstreamSimulation",
      dependencies: ["Jetstream", "JetstreamMutex", "JetstreamServer"],
      swiftSettings: settings),
    .executableTarget(
      name: "Simulate", dependencies: ["JetstreamSimulation"], swiftSettings: settings),
    .testTarget(
      name: "JetstreamSimulationTests",
      dependencies: ["Jetstream", "JetstreamSimulation", "Pacing", "Simulate"],
      swiftSettings: settings),
    .executableTarget(
      name: "Benchmarks",
      dependencies: ["CEventLoop", "Jetstream", "JetstreamServer", "JetstreamWebSocket"],
      swiftSettings: settings),
    .executableTarget(
      name: "JetstreamTool",
      dependencies: ["Jetstream", "JetstreamMutex", "JetstreamServer", "JetstreamWebSocket"],
      swiftSettings: settings),
    .executableTarget(
      name: "shapes", dependencies: ["Jetstream", "JetstreamServer", "JetstreamWebSocket"],
      path: "Samples/Shapes", resources: [.embedInCode("Page")], swiftSettings: settings),
    .testTarget(
      name: "ShapesTests", dependencies: ["Jetstream", "JetstreamWebSocket", "Pacing", "shapes"],
      swiftSettings: settings),
    .executableTarget(
      name: "catalogue", dependencies: ["Jetstream", "JetstreamServer"], path: "Samples/Catalogue",
      swiftSettings: settings),
    .executableTarget(
      name: "chat", dependencies: ["Jetstream", "JetstreamServer"], path: "Samples/Chat",
      exclude: ["README.md"], swiftSettings: settings),
    .testTarget(
      name: "ChatTests", dependencies: ["Jetstream", "Pacing", "chat"], swiftSettings: settings),
    .executableTarget(
      name: "checkout", dependencies: ["Jetstream", "JetstreamServer"], path: "Samples/Checkout",
      exclude: ["README.md"], swiftSettings: settings),
    .testTarget(
      name: "CheckoutTests", dependencies: ["Jetstream", "Pacing", "checkout"],
      swiftSettings: settings),
    .testTarget(
      name: "CatalogueTests", dependencies: ["Pacing", "SchemaServer", "catalogue"],
      swiftSettings: settings),
    // A server without model classes.
    .executableTarget(
      name: "SchemaServer", dependencies: ["Jetstream", "JetstreamServer"],
      path: "Tests/Fixtures/SchemaServer", swiftSettings: settings),
    .testTarget(
      name: "JetstreamWebSocketTests",
      dependencies: ["JetstreamWebSocket", "Pacing", "SocketProcess"], swiftSettings: settings),
    .executableTarget(
      name: "SocketProcess", dependencies: ["JetstreamWebSocket"],
      path: "Tests/Fixtures/SocketProcess", swiftSettings: settings),
    // Orders, rules, procedures, states and limits of a server. These tests and the next need no simulation: they are
    // compiled while that is, and beside each other.
    .testTarget(
      name: "JetstreamServerTests",
      dependencies: ["Jetstream", "JetstreamServer", "JetstreamWebSocket", "Pacing"],
      swiftSettings: settings),
    // Clients and a server together: replicas that sync, sessions, and peers of version 1.
    .testTarget(
      name: "JetstreamSyncTests",
      dependencies: ["Jetstream", "JetstreamServer", "JetstreamWebSocket", "Pacing"],
      swiftSettings: settings),
    // Scopes that are stored, opened and closed, on simulated disks and real ones.
    .testTarget(
      name: "JetstreamStorageTests",
      dependencies: [
        "Jetstream", "JetstreamServer", "JetstreamSimulation", "JetstreamWebSocket", "Pacing",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "JetstreamToolTests",
      dependencies: [
        "Jetstream", "JetstreamServer", "JetstreamTool", "JetstreamWebSocket", "Pacing",
      ],
      swiftSettings: settings),
    .target(
      name: "MainActorFixture", dependencies: ["Jetstream"], path: "Tests/Fixtures/MainActor",
      swiftSettings: settings + [.defaultIsolation(MainActor.self)]),
    .target(
      name: "ReflectionOffFixture", dependencies: ["Jetstream"],
      path: "Tests/Fixtures/ReflectionOff",
      swiftSettings: settings + [.unsafeFlags(["-Xfrontend", "-disable-reflection-metadata"])]),
    // Lets tests that compute leave room for those that talk over sockets.
    .target(name: "Pacing", path: "Tests/Fixtures/Pacing", swiftSettings: settings),
    // What the fuzzer and the tests feed with whatever bytes they can think of.
    .target(
      name: "FuzzTargets", dependencies: ["Jetstream"], path: "Tests/FuzzTargets",
      swiftSettings: settings),
    .executableTarget(
      name: "LogWriter", dependencies: ["Jetstream"], path: "Tests/Fixtures/LogWriter",
      swiftSettings: settings),
    .testTarget(
      name: "JetstreamTests",
      dependencies: [
        "FuzzTargets", "Jetstream", "MainActorFixture", "Pacing", "ReflectionOffFixture",
      ],
      exclude: ["Golden"], swiftSettings: settings),
    // Logs, on simulated disks and real ones. A module of its own: the tests above need no server, and are compiled while
    // that is.
    .testTarget(
      name: "JetstreamLogTests",
      dependencies: [
        "Jetstream", "JetstreamSimulation", "JetstreamTool", "LogWriter", "Pacing",
      ],
      swiftSettings: settings),
    // These run the suites again whose outcome an isolation domain may change, with scopes that live on an actor: how
    // signals, callbacks, observers of each kind, live queries, sequences and snapshots reach those who asked for them.
    .testTarget(
      name: "JetstreamMainActorTests", dependencies: ["Jetstream", "Pacing"],
      path: "Tests/Domains/MainActor", swiftSettings: settings + [.define("ON_ACTOR")]),
    .testTarget(
      name: "JetstreamSideActorTests", dependencies: ["Jetstream", "Pacing"],
      path: "Tests/Domains/SideActor",
      swiftSettings: settings + [.define("ON_ACTOR"), .define("SIDE_ACTOR")]),
  ]
)

// One release build for everything, as `.ci/run` makes it: the tests run against it, too. So the libraries can be
// tested (`-enable-testing`), and a precondition that fails says its sentence, as in a debug build. The tests
// themselves are not optimized. Each module is compiled in one go. Debug information is left out, since `.ci/run` runs
// nothing with a debugger: the backtrace of a crash then has functions without lines.
if Context.environment["JETSTREAM_ONE_BUILD"] != nil {
  let flags = [
    "-enable-testing", "-assert-config", "Debug", "-no-emit-module-separately-wmo",
    "-num-threads", "2", "-Xfrontend", "-gnone",
  ]
  for target in package.targets where !["CEventLoop", "CJetstream"].contains(target.name) {
    let optimization = target.type == .test ? ["-Onone"] : []
    target.swiftSettings =
      (target.swiftSettings ?? []) + [
        .unsafeFlags(flags + optimization, .when(configuration: .release))
      ]
  }
}

// The fuzzer links with a library that only `-sanitize=fuzzer` brings: see `.ci/fuzz`.
if Context.environment["JETSTREAM_FUZZ"] != nil {
  package.targets += [
    .target(name: "FuzzDriver", path: "Tests/Fuzz/Driver"),
    .executableTarget(
      name: "fuzz", dependencies: ["FuzzDriver", "FuzzTargets"], path: "Tests/Fuzz/Command",
      swiftSettings: settings),
  ]
}
