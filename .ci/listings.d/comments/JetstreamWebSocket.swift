import JetstreamWebSocket

func run() async throws {
  do {
    // listing
  }
}
