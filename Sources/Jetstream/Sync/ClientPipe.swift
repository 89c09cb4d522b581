/// Reads one connection away from the client's actor and brings what it decoded there.
///
/// Sound although a client is not Sendable: the reference is followed only in methods that are
/// isolated to the client's own actor. Both are held weakly, so that reading keeps neither alive.
struct ClientPipe: @unchecked Sendable {
  weak var client: Client?
  let actor: WeakActor
  let number: Int

  init(client: Client, actor: WeakActor, number: Int) {
    self.client = client
    self.actor = actor
    self.number = number
  }

  @concurrent
  func run(_ transport: any Transport, headers: [(String, String)]) async {
    let connection: any TransportConnection
    do {
      connection = try await transport.open(headers: headers)
    } catch {
      guard let actor = actor.value else { return }
      return await closed(code: 0, reason: "\(error)", on: actor)
    }
    if let actor = actor.value { await opened(connection, on: actor) }
    var reason = ""
    do {
      while let bytes = try await connection.receive() {
        let frame = Message.frame(bytes)
        guard let actor = actor.value else { break }
        await received(frame, on: actor)
      }
    } catch {
      reason = "\(error)"
    }
    guard let actor = actor.value else { return connection.close(code: 1000, reason: "") }
    let status = connection.closeStatus
    await closed(
      code: status?.code ?? 0, reason: reason.isEmpty ? status?.reason ?? "" : reason, on: actor)
  }

  private func opened(
    _ connection: any TransportConnection, on actor: isolated any Actor
  ) async {
    guard let client else { return connection.close(code: 1000, reason: "") }
    client.opened(connection, number: number)
  }

  private func received(
    _ frame: Result<[Result<Message, MessageError>], FrameError>, on actor: isolated any Actor
  ) async { client?.received(frame, number: number) }

  private func closed(code: Int, reason: String, on actor: isolated any Actor) async {
    client?.closed(code: code, reason: reason, number: number)
  }
}
