import Jetstream
import JetstreamServer

extension ClientLog {
  /// Opens the log in a directory, to look at what a client keeps in it.
  init(
    _ path: String, configuration: LogConfiguration = LogConfiguration()
  ) throws(LogError) {
    self.init(try FragmentLog(path, configuration: configuration).records)
  }
}

extension ScopeLog {
  /// Opens the log in a directory, to look at what a server keeps in it.
  init(
    _ path: String, configuration: LogConfiguration = LogConfiguration()
  ) throws(LogError) {
    self.init(try FragmentLog(path, configuration: configuration).records)
  }
}
