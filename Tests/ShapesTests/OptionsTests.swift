import Testing

@testable import shapes

@Suite("The command line")
struct OptionsTests {
  @Test("Without arguments it serves on the usual port")
  func defaults() throws {
    #expect(try Options([]).task == .serve(host: "127.0.0.1", port: 8080, storage: .cache))
  }

  @Test("Host and port can be chosen, in both spellings")
  func serves() throws {
    let expected = Options.Task.serve(host: "::", port: 0, storage: .cache)
    #expect(try Options(["--host", "::", "--port", "0"]).task == expected)
    #expect(try Options(["--port=0", "--host=::"]).task == expected)
    #expect(try Options(["--port", "1", "--port", "0", "--host", "::"]).task == expected)
  }

  @Test("The drawing is kept in a folder, or not at all")
  func storage() throws {
    func storage(_ arguments: [String]) throws -> Options.Storage? {
      if case .serve(_, _, let storage) = try Options(arguments).task { storage } else { nil }
    }
    #expect(try storage(["--memory"]) == .memory)
    #expect(try storage(["--log", "a/b"]) == .folder("a/b"))
    #expect(try storage(["--log=c"]) == .folder("c"))
  }

  @Test("Joining needs an address of a WebSocket")
  func joins() throws {
    #expect(try Options(["--join", "ws://a:1"]).task == .join(url: "ws://a:1"))
    #expect(try Options(["--join=wss://b"]).task == .join(url: "wss://b"))
    #expect(throws: Options.Problem.self) { try Options(["--join", "http://a:1"]) }
    #expect(throws: Options.Problem.self) { try Options(["--join", "ws://a:1", "--port", "1"]) }
  }

  @Test("Help wins over everything that is sound")
  func helps() throws {
    #expect(try Options(["--port", "1", "--help"]).task == .help)
    #expect(try Options(["-h"]).task == .help)
  }

  @Test(
    "What cannot be understood is named",
    arguments: [
      (["--colour"], "Unknown option '--colour'"),
      (["file"], "Unknown option 'file'"),
      (["--port"], "--port needs a value"),
      (["--port", "--help"], "--port needs a value"),
      (["--port="], "--port needs a value"),
      (["--port", "65536"], "'65536' is no port: it has to be a number from 0 to 65535"),
      (["--port", "-1"], "'-1' is no port: it has to be a number from 0 to 65535"),
      (["--host"], "--host needs a value"),
      (["--help=me"], "--help takes no value"),
      (["--memory=much"], "--memory takes no value"),
      (["--log"], "--log needs a value"),
      (["--log", "a", "--memory"], "--log and --memory contradict each other"),
      (["--memory", "--log", "a"], "--log and --memory contradict each other"),
      (
        ["--join", "ws://a", "--memory"],
        "with --join the server keeps the drawing, so --log and --memory do not fit"
      ),
    ])
  func problems(arguments: [String], text: String) {
    #expect(throws: Options.Problem(text: text)) { try Options(arguments) }
  }
}
