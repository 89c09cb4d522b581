let modelSuite = Suite(name: "model", summary: "properties, objects, trees and change sets") {
  memoryRows() + accessRows() + lifetimeRows() + captureRows() + treeRows() + dictionaryRows()
    + replayRows()
    + bridgedRows()
}
