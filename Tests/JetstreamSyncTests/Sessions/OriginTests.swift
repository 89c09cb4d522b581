import Foundation
import Jetstream
import JetstreamWebSocket
import Synchronization
import Testing

@testable import JetstreamServer

@Suite("Pages of other origins", .live, .timeLimit(.minutes(5)))
@MainActor
struct OriginTests {
  private nonisolated static func request(
    origin: String? = nil, host: String? = "localhost:8080", from address: String? = "127.0.0.1"
  ) -> HTTPRequest {
    var headers = HTTPHeaders()
    if let host { headers.append(name: "Host", value: host) }
    if let origin { headers.append(name: "Origin", value: origin) }
    var request = HTTPRequest(method: "GET", target: "/", headers: headers)
    request.remoteAddress = address
    return request
  }

  private nonisolated static func allows(
    _ request: HTTPRequest, origins: Set<String> = [], hosts: Set<String> = []
  ) -> Bool {
    let policy = OriginPolicy(origins: origins, hosts: hosts)
    return policy.objection(to: request, opensWebSocket: true) == nil
  }

  @Test("A page of the server itself may, and one of another origin may not")
  func origins() {
    #expect(Self.allows(Self.request()), "who names no origin is no browser")
    #expect(Self.allows(Self.request(origin: "http://localhost:8080")))
    #expect(Self.allows(Self.request(origin: "HTTP://LocalHost:8080")))
    for origin in [
      "http://localhost:8081", "http://localhost", "https://example.org", "null", "localhost:8080",
      "", "http://localhost:8080.example.org", "http://localhost:8080/",
    ] {
      #expect(!Self.allows(Self.request(origin: origin)), "\(origin)")
    }
    let listed: Set = ["https://App.example.org", "null"]
    #expect(Self.allows(Self.request(origin: "https://app.example.org"), origins: listed))
    #expect(Self.allows(Self.request(origin: "null"), origins: listed))
    #expect(!Self.allows(Self.request(origin: "http://app.example.org"), origins: listed))
    #expect(Self.allows(Self.request(origin: "https://anything.example"), origins: ["*"]))
    var two = Self.request(origin: "http://localhost:8080")
    two.headers.append(name: "Origin", value: "https://example.org")
    #expect(!Self.allows(two))
    let page = Self.request(origin: "https://example.org")
    #expect(OriginPolicy(origins: [], hosts: []).objection(to: page, opensWebSocket: false) == nil)
  }

  @Test("Who comes from the same machine asks for it under a name that is its own")
  func hosts() {
    for host in [
      "localhost", "127.0.0.1:80", "127.1.2.3", "[::1]:8080", "a.localhost:1", "10.0.0.1",
      "[fe80::2]",
      ProcessInfo.processInfo.hostName,
    ] {
      #expect(Self.allows(Self.request(host: host)), "\(host)")
    }
    for host in ["evil.example:8080", "127.0.0.1.evil.example", "127.0.0", "", "300.1.1.1"] {
      #expect(!Self.allows(Self.request(origin: "http://\(host)", host: host)), "\(host)")
    }
    #expect(!Self.allows(Self.request(host: "evil.example", from: "::1")))
    var own = Self.request(host: "evil.example", from: "192.168.1.5")
    own.isFromSameMachine = true
    #expect(!Self.allows(own), "a name that points at the machine's other address")
    #expect(Self.allows(Self.request(host: nil)), "an HTTP/1.0 client")
    // From elsewhere, the server cannot know its names.
    #expect(Self.allows(Self.request(host: "jetstream.example.org", from: "203.0.113.5")))
    let proxied = Self.request(
      origin: "https://jetstream.example.org", host: "jetstream.example.org")
    #expect(Self.allows(proxied, hosts: ["Jetstream.example.org"]))
    #expect(!Self.allows(proxied))
  }

  @Test("A server refuses with 403 what its policy says, and tells why")
  func live() async throws {
    let server = Server(configuration: .init().patient)
    var log: [String] = []
    let token = server.onDiagnostic.listen { log.append("\($0)") }
    defer { token.cancel() }
    server.host(Scope(name: "Canvas", root: Canvas()))
    let port = try await server.listen { _ in .text("page") }
    let url = "ws://127.0.0.1:\(port)"
    await #expect(throws: WebSocketError.handshakeRefused(status: 403)) {
      _ = try await WebSocketClient.connect(
        to: url, headers: [("Origin", "https://evil.example")], configuration: .patient)
    }
    #expect(
      log.contains { $0.contains("refused 127.0.0.1: Pages of https://evil.example may not") })
    let own = try await WebSocketClient.connect(
      to: url, headers: [("Origin", "http://127.0.0.1:\(port)")], configuration: .patient)
    own.abort()
    for (host, status) in [("127.0.0.1:\(port)", "200"), ("evil.example:\(port)", "403")] {
      let socket = try BareSocket(port: port)
      socket.send(Array("GET / HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n".utf8))
      let answer = String(decoding: await socket.read(), as: UTF8.self)
      #expect(answer.hasPrefix("HTTP/1.1 \(status) "))
      #expect(answer.hasSuffix("page") == (status == "200"))
    }
    await server.stop()
  }

  @Test("Until there is a session a frame may have 64 KiB, and then what the server reads")
  func handshakeSize() async throws {
    let room = try await LiveRoom()
    let status = try await room.withstand {
      let peer = try await BadPeer(port: room.port)
      let text = String(repeating: "x", count: 70_000)
      try peer.send(
        #"{"type":"SessionCreate","index":0,"version":"0.1.0","params":{"a":"\#(text)"}}"#)
      let reply = try? await peer.connection.receive()
      #expect(reply == nil, "The server has read it.")
      return peer.connection.closeStatus
    }
    #expect(status?.code == .messageTooBig)
    let other = try await LiveRoom()
    let replies = try await other.withstand {
      let peer = try await BadPeer.joined(port: other.port)
      let text = String(repeating: "x", count: 1 << 20)
      try peer.send(
        #"{"type":"ScopeSync","index":2,"scopeIndex":0,"fragments":[{"type":"change","uuid":"\#(other.root)","clsName":"Canvas","properties":{"unheard of":"\#(text)"}}]}"#
      )
      return try await peer.replies(to: 2)
    }
    #expect(replies.count == 1 && replies[0].error != nil)
  }

  @Test("Large messages take turns")
  nonisolated func gate() async {
    let gate = LargeMessageGate()
    let inside = Inside()
    let most = await withTaskGroup(of: Int.self) { group in
      for _ in 0..<20 {
        group.addTask {
          await gate.enter()
          let count = inside.count.add(1, ordering: .relaxed).newValue
          for _ in 0..<10 { await Task.yield() }
          inside.count.subtract(1, ordering: .relaxed)
          await gate.leave()
          return count
        }
      }
      return await group.reduce(0, max)
    }
    #expect(most == 1)
  }
}

private final class Inside: Sendable {
  let count = Atomic(0)
}
