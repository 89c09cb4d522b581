import Testing

@testable import JetstreamTool

@Suite("The command line of jetstream bench", .paced)
struct BenchOptionsTests {
  @Test("Options that are not given have defaults")
  func defaults() throws {
    let options = try BenchOptions(["ws://127.0.0.1:8080"])
    #expect(options.url == "ws://127.0.0.1:8080")
    #expect((options.processes, options.clients, options.scopes) == (2, 10, 1))
    #expect((options.writers, options.inFlight, options.seconds) == (1, 1, 10))
    #expect(options.rate == nil && options.size == 64 && !options.isJSON && !options.isHelp)
    #expect(try BenchOptions(["--scopes", "16", "ws://a"]).clients == 32)
    #expect(try BenchOptions(["--scopes", "60000", "ws://a"]).clients == 100_000)
    #expect(try BenchOptions(["--clients", "3", "--processes", "8", "ws://a"]).processes == 3)
  }

  @Test("Options are taken in any order")
  func given() throws {
    let options = try BenchOptions([
      "--processes", "4", "--clients", "40", "wss://example.org/sync", "--scopes", "8",
      "--writers", "2", "--rate", "0.5", "--seconds", "3", "--size", "1000", "--json",
    ])
    #expect(options.url == "wss://example.org/sync")
    #expect((options.processes, options.clients, options.scopes) == (4, 40, 8))
    #expect((options.writers, options.rate, options.seconds) == (2, 0.5, 3))
    #expect(options.size == 1000 && options.isJSON)
    #expect(try BenchOptions(["--in-flight", "64", "ws://a"]).inFlight == 64)
    #expect(try BenchOptions(["-h"]).isHelp && BenchOptions(["--rate", "--help"]).isHelp)
  }

  @Test(
    "A mistake is named in the sentence",
    arguments: [
      ([], "address"), (["ws://a", "ws://b"], "more than one address"),
      (["http://a"], "\"http://a\""), (["a"], "\"a\""), (["ws://a", "--speed"], "--speed"),
      (["ws://a", "--clients"], "--clients"), (["ws://a", "--clients", "many"], "--clients"),
      (["ws://a", "--processes", "0"], "--processes"), (["ws://a", "--scopes", "-1"], "--scopes"),
      (["ws://a", "--writers", "100001"], "--writers"), (["ws://a", "--size", "31"], "--size"),
      (["ws://a", "--seconds", "0"], "--seconds"), (["ws://a", "--rate", "0"], "--rate"),
      (["ws://a", "--rate", "nan"], "--rate"), (["ws://a", "--in-flight", "0"], "--in-flight"),
      (["ws://a", "--in-flight", "2", "--rate", "5"], "exclude"),
      (["ws://a", "--scopes", "4", "--writers", "3", "--clients", "11"], "at least 12 clients"),
      (
        ["ws://a", "--scopes", "100000", "--writers", "99999"],
        "need 9999900000 clients; 100000 are the most"
      ),
    ])
  func mistakes(arguments: [String], word: String) {
    #expect {
      try BenchOptions(arguments)
    } throws: {
      ($0 as? BenchOptions.Problem)?.text.contains(word) == true
    }
  }

  @Test("Each client has one part, each scope its writers, and all processes have nearly the same")
  func parts() throws {
    for (processes, clients, scopes, writers) in [
      (2, 10, 1, 1), (2, 16, 16, 1), (3, 32, 5, 2), (7, 7, 7, 1), (4, 101, 1, 64), (1, 9, 2, 3),
      (4, 4, 2, 2), (2, 32, 16, 1),
    ] {
      let options = try BenchOptions([
        "ws://a", "--processes", "\(processes)", "--clients", "\(clients)", "--scopes",
        "\(scopes)", "--writers", "\(writers)",
      ])
      let processParts = (1...processes).map(options.parts(of:))
      let parts = processParts.flatMap(\.self)
      #expect(parts.count == clients)
      for scope in 1...scopes {
        let own = parts.filter { $0.scope == scope }
        #expect(own.count { $0.isWriter } == writers)
        #expect(own.count >= clients / scopes && own.count <= clients / scopes + 1)
      }
      let least = clients / processes
      #expect(processParts.allSatisfy { $0.count == least || $0.count == least + 1 })
      if clients / scopes >= 2, processes == 2 {
        #expect(processParts.allSatisfy { Set($0.map(\.scope)).count == scopes })
      }
    }
  }

  @Test("A process that may open too few files for its clients says so, and what helps")
  func files() throws {
    #expect(BenchWorker.shortage(of: 1_024, for: 100) == nil)
    let sentence = try #require(BenchWorker.shortage(of: 1_024, for: 1_000))
    #expect(sentence.contains("1000 clients") && sentence.contains("1024 files"))
    #expect(sentence.contains("--processes") && sentence.contains("ulimit -n"))
  }

  @Test("A text has its size and the time of its edit, which only the same run reads")
  func texts() {
    let text = BenchText(run: "0a1b2c3d", size: 40)
    #expect(text.text(at: 123_456) == "0a1b2c3d 123456 xxxxxxxxxxxxxxxxxxxxxxxx")
    #expect(text.time(of: text.text(at: 123_456)) == 123_456)
    let least = BenchText(run: "0a1b2c3d", size: BenchOptions.leastSize)
    #expect(least.text(at: .max).utf8.count == BenchOptions.leastSize)
    #expect(least.time(of: least.text(at: .max)) == .max)
    #expect(BenchText(run: "ffffffff", size: 40).time(of: text.text(at: 1)) == nil)
    for other in ["", "0a1b2c3d", "0a1b2c3d x y"] { #expect(text.time(of: other) == nil) }
  }
}
