/// A pipe that reads and decodes one connection outside the client's actor, and delivers the messages to the client
/// on it.
struct ClientPipe: Sendable {
  let client: HomeReference<Client>
  let number: Int

  /// Asks for credentials and connects with them.
  @concurrent
  func run(
    _ transport: any Transport, _ source: @escaping Credentials.Source, _ reason: Credentials.Reason
  ) async {
    let credentials: Credentials
    do {
      credentials = try await source(reason)
    } catch {
      let text = "there are no credentials: \(error)"
      await client.perform { [number] in $0.closed(code: 0, reason: text, number: number) }
      return
    }
    await client.perform { [number] in $0.took(credentials, number: number) }
    await run(transport, headers: credentials.headers)
  }

  @concurrent
  func run(_ transport: any Transport, headers: [(String, String)]) async {
    let connection: any TransportConnection
    do {
      connection = try await transport.open(headers: headers)
    } catch {
      let reason = "\(error)"
      let known = error as? any TransportError
      let (pause, isPermanent) = (known?.retryAfter ?? .zero, known?.isPermanent ?? false)
      let refusesCredentials = known?.refusesCredentials ?? false
      await client.perform { [number] in
        $0.closed(
          code: 0, reason: reason, number: number, retryAfter: pause, isPermanent: isPermanent,
          refusesCredentials: refusesCredentials)
      }
      return
    }
    // If the client or its actor is gone, closes the connection.
    let opened: Void? = await client.perform { [number] in $0.opened(connection, number: number) }
    guard opened != nil else { return connection.close(code: 1000, reason: "") }
    var reason = ""
    do {
      while let bytes = try await connection.receive() {
        let frame = MessageFrame(bytes, limits: .trusted)
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

/// The connection of a client, and the task that opens and reads it.
struct ClientLink {
  var connection: (any TransportConnection)?
  var reader: Task<Void, Never>?

  /// The number of bytes that have arrived; 0 if the transport does not count them.
  var receivedBytes: Int { (connection as? WebSocketTransportConnection)?.receivedBytes ?? 0 }

  func end() {
    connection?.close(code: 1000, reason: "")
    reader?.cancel()
  }
}
