/// Reads one connection away from the client's actor and brings what it decoded there.
struct ClientPipe: Sendable {
  let client: HomeReference<Client>
  let number: Int

  @concurrent
  func run(_ transport: any Transport, headers: [(String, String)]) async {
    let connection: any TransportConnection
    do {
      connection = try await transport.open(headers: headers)
    } catch {
      let reason = "\(error)"
      let known = error as? any TransportError
      let (pause, isPermanent) = (known?.retryAfter ?? .zero, known?.isPermanent ?? false)
      await client.perform { [number] in
        $0.closed(
          code: 0, reason: reason, number: number, retryAfter: pause, isPermanent: isPermanent)
      }
      return
    }
    // What nobody waits for any more is closed.
    let opened: Void? = await client.perform { [number] in $0.opened(connection, number: number) }
    guard opened != nil else { return connection.close(code: 1000, reason: "") }
    var reason = ""
    do {
      while let bytes = try await connection.receive() {
        let frame = Message.frame(bytes)
        let received: Void? = await client.perform { [number] in
          $0.received(frame, size: bytes.count, number: number)
        }
        guard received != nil else { return connection.close(code: 1000, reason: "") }
      }
    } catch {
      reason = "\(error)"
    }
    let status = connection.closeStatus
    let text = reason.isEmpty ? status?.reason ?? "" : reason
    await client.perform { [number] in
      $0.closed(code: status?.code ?? 0, reason: text, number: number)
    }
  }
}
