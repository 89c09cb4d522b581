import JetstreamSimulation
import Testing

@testable import Simulate

@Suite("The command line of simulate", .paced)
struct SimulateOptionsTests {
  @Test("What is not given is as usual")
  func defaults() throws {
    let options = try SimulateOptions([])
    #expect(options.seeds == 1_000)
    #expect(options.first == 1)
    #expect(options.configuration == .rough)
    #expect(!options.isTraced)
  }

  @Test("Options say how much is run")
  func options() throws {
    let options = try SimulateOptions([
      "--seeds", "20", "--first", "7", "--steps", "9", "--clients", "2", "--faults", "calm",
      "--jobs", "3",
    ])
    #expect(options.jobs == 3)
    #expect(options.seeds == 20)
    #expect(options.first == 7)
    #expect(options.configuration.name == "calm")
    #expect(options.configuration.steps == 9)
    #expect(options.configuration.clients == 2)
    let one = try SimulateOptions([
      "--seed", "12", "--trace", "--promise", "all", "--rate", "loss=0.5", "--as-found", "--rate",
      "undo=0.25", "--rate", "revocations=0.125",
    ])
    #expect(!one.shrinks)
    #expect(one.seeds == 1)
    #expect(one.first == 12)
    #expect(one.isTraced)
    #expect(one.configuration.promises == .all)
    #expect(one.configuration.faults.loss == 0.5)
    #expect(one.configuration.features.undo == 0.25)
    #expect(one.configuration.revocations == 0.125)
    for name in SimulationConfiguration.shareNames {
      #expect(try SimulateOptions(["--rate", name + "=1"]).configuration[share: name] == 1)
    }
  }

  @Test(
    "What makes no sense is named",
    arguments: [
      (["--seeds"], "--seeds"), (["--seeds", "none"], "--seeds"), (["--seeds", "0"], "--seeds"),
      (["--first", "-1"], "--first"), (["--jobs", "0"], "--jobs"),
      (["--clients", "0"], "--clients"),
      (["--steps", "x"], "--steps"), (["--faults", "soft"], "--faults"), (["--trace"], "--trace"),
      (["--rate", "loss"], "--rate"), (["--rate", "rain=0.1"], "--rate"),
      (["--rate", "cut=2"], "--rate"), (["--promise", "gold"], "--promise"),
      (["--speed"], "--speed"), (["12"], "12"),
      (["--first", "18446744073709551615"], "--first"),
    ])
  func problems(arguments: [String], name: String) {
    #expect {
      _ = try SimulateOptions(arguments)
    } throws: { error in
      (error as? SimulateOptions.Problem)?.text.contains(name) == true
    }
  }
}
