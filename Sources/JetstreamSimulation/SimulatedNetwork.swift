/// The connections between clients and the server, with the packets that are in transit on them.
///
/// The packets of a connection arrive in order, each after a delay that is derived from the seed. The packets
/// of a client that is unreachable wait; none of them is lost by that.
final class SimulatedNetwork {
  /// A packet, which arrives at one end of a connection.
  enum Packet {
    case open
    case frame([UInt8])
    case close(code: Int, reason: String)
  }

  struct Travelling {
    var packet: Packet
    var due: Duration
    /// True if the packet comes from the client's own system, which notices a cut while the client is
    /// unreachable.
    var isLocal = false

    /// True for a frame with a message that has a number of its own.
    var isNumbered: Bool {
      guard case .frame(let frame) = packet, let json = PlainJSON(frame) else { return false }
      return json.messages.contains { ($0["index"]?.whole ?? 0) > 0 }
    }
  }

  /// One direction of a connection.
  struct Lane {
    var packets: [Travelling] = []
    var random: SimulationRandom
    private var last: Duration = .zero

    init(random: SimulationRandom) { self.random = random }

    mutating func append(
      _ packet: Packet, now: Duration, delay: ClosedRange<Int>, isLocal: Bool = false
    ) {
      last = max(last, now + .milliseconds(random.number(in: delay)))
      packets.append(Travelling(packet: packet, due: last, isLocal: isLocal))
    }

    /// Delays everything in transit.
    mutating func hold(for duration: Duration) {
      for at in packets.indices { packets[at].due += duration }
      last += duration
    }

    /// The indexes of the frames.
    var frames: [Int] {
      packets.indices.filter { if case .frame = packets[$0].packet { true } else { false } }
    }
  }

  /// A connection of a client with the server.
  ///
  /// Each side ends it for itself. A client that leaves the connection receives nothing more on it, but what it
  /// has sent still arrives, with the close behind it; the same holds for a server that closes it. A cut
  /// removes everything in transit in both directions, and each side that still uses the connection hears of a
  /// close. The connection is forgotten when it is over for both sides and nothing is in transit.
  final class Link {
    let id: Int
    let client: Int
    /// The number that the client's engine has given it.
    let connection: Int
    /// The token of the session that it belongs to; nil until that is known.
    var token: String?
    var toServer: Lane
    var toClient: Lane
    /// True after the server has accepted it.
    var isOpen = false
    /// True after the client has left it, or has heard that it is closed.
    var isOverForClient = false
    /// True after the server has closed it, or has heard that it is closed.
    var isOverForServer = false
    var isCut = false

    /// True if a packet that is sent now can arrive.
    var carries: Bool { !isOverForClient && !isOverForServer && !isCut }

    var isOver: Bool {
      isOverForClient && isOverForServer && toServer.packets.isEmpty && toClient.packets.isEmpty
    }

    init(id: Int, client: Int, connection: Int, token: String?, seed: UInt64) {
      self.id = id
      self.client = client
      self.connection = connection
      self.token = token
      toServer = Lane(random: SimulationRandom(seed: seed, branch: 2, client, connection, 0))
      toClient = Lane(random: SimulationRandom(seed: seed, branch: 2, client, connection, 1))
    }
  }

  private let seed: UInt64
  private let delay: ClosedRange<Int>
  private(set) var links: [Link] = []
  private var nextLink = 1
  /// The times until which clients are unreachable.
  private var outages: [Int: Duration] = [:]
  /// The number of connections that each client has had.
  private var counts: [Int: Int] = [:]
  var now: Duration = .zero

  init(seed: UInt64, delay: ClosedRange<Int>) {
    self.seed = seed
    self.delay = delay
  }

  func link(_ id: Int) -> Link? { links.first { $0.id == id } }

  /// Returns the connection that a client uses.
  func link(of client: Int) -> Link? { links.last { $0.client == client && !$0.isOverForClient } }

  /// True while nothing is in transit.
  var isIdle: Bool {
    links.allSatisfy { $0.toServer.packets.isEmpty && $0.toClient.packets.isEmpty }
  }

  /// True while nothing but pings is in transit, and none of them asks for anything. If there are many clients
  /// far away, some ping always is.
  var carriesOnlyPings: Bool {
    links.allSatisfy { link in
      (link.toServer.packets + link.toClient.packets).allSatisfy { packet in
        guard case .frame(let frame) = packet.packet, let json = PlainJSON(frame) else {
          return false
        }
        return json.messages.allSatisfy {
          $0["type"]?.text == "Ping" && $0["resendMissing"] != .bool(true)
            && $0["differences"]?.elements.isEmpty ?? true
        }
      }
    }
  }

  // MARK: Clients

  func connect(_ client: Int, connection: Int, token: String?) {
    counts[client, default: 0] += 1
    let link = Link(
      id: nextLink, client: client, connection: connection, token: token,
      seed: seed &+ UInt64(counts[client]!))
    nextLink += 1
    links.append(link)
    link.toServer.append(.open, now: now, delay: delay)
  }

  func send(_ frame: [UInt8], from client: Int) {
    guard let link = link(of: client), link.carries else { return }
    link.toServer.append(.frame(frame), now: now, delay: delay)
  }

  /// Leaves the client's connection. What the client has sent still arrives.
  func disconnect(_ client: Int) {
    guard let link = link(of: client) else { return }
    let tellsServer = link.carries
    link.isOverForClient = true
    link.toClient.packets = []
    if tellsServer {
      link.toServer.append(.close(code: 0, reason: ""), now: now, delay: delay)
    }
    forgetOld()
  }

  // MARK: Server

  func send(_ frame: [UInt8], on id: Int) {
    guard let link = link(id), link.carries else { return }
    link.toClient.append(.frame(frame), now: now, delay: delay)
  }

  /// Opens the server's end of a connection. The client hears of that before anything else.
  func accept(_ link: Link) {
    link.isOpen = true
    if link.carries { link.toClient.append(.open, now: now, delay: delay) }
  }

  func close(_ id: Int, code: Int, reason: String) {
    guard let link = link(id) else { return }
    let tellsClient = link.carries
    link.isOverForServer = true
    link.toServer.packets = []
    if tellsClient {
      link.toClient.append(.close(code: code, reason: reason), now: now, delay: delay)
    }
    forgetOld()
  }

  // MARK: Faults

  /// Cuts a client's connection: everything in transit is lost. Returns false if there was none.
  func cut(_ client: Int) -> Bool {
    guard let link = link(of: client), !link.isCut else { return false }
    cut(link)
    return true
  }

  private func cut(_ link: Link) {
    link.isCut = true
    link.toServer.packets = []
    link.toClient.packets = []
    if link.isOpen, !link.isOverForServer {
      link.toServer.append(.close(code: 0, reason: "cut"), now: now, delay: delay)
    } else {
      link.isOverForServer = true
    }
    if !link.isOverForClient {
      link.toClient.append(.close(code: 0, reason: "cut"), now: now, delay: delay, isLocal: true)
    }
  }

  /// Ends a client's process. What it has sent may be lost, or still arrive: at once, or long after the next
  /// process has started.
  func abandon(_ client: Int) {
    guard let link = link(of: client) else { return }
    if !link.carries || link.toServer.random.chance(0.3) {
      cut(link)
    } else {
      if link.toServer.random.chance(0.7) {
        link.toServer.hold(for: .milliseconds(link.toServer.random.number(in: 0...2_500)))
      }
      link.toServer.append(.close(code: 0, reason: ""), now: now, delay: delay)
    }
    link.isOverForClient = true
    link.toClient.packets = []
    forgetOld()
  }

  /// Ends all connections, because the server's process has ended.
  func serverIsGone() {
    for link in links {
      link.isOverForServer = true
      cut(link)
      link.toServer.packets = []
    }
    forgetOld()
  }

  func partition(_ client: Int, for duration: Duration) {
    outages[client] = max(outages[client] ?? .zero, now + duration)
  }

  func heal() { outages = [:] }

  /// Changes the frames in one direction of a client's connection, if there are at least `least` of them.
  func tamper(
    _ client: Int, toServer: Bool, least: Int = 1, _ change: (inout [Travelling], [Int]) -> Void
  ) {
    guard let link = link(of: client) else { return }
    let frames = toServer ? link.toServer.frames : link.toClient.frames
    guard frames.count >= least else { return }
    if toServer {
      change(&link.toServer.packets, frames)
    } else {
      change(&link.toClient.packets, frames)
    }
  }

  // MARK: Arrivals

  /// The time at which the next packet arrives; nil if nothing is in transit.
  var nextArrival: Duration? {
    links.lazy.compactMap { self.arrival($0)?.due }.min()
  }

  /// Removes and returns the packet that arrives first; nil if none has arrived by now.
  func next() -> (link: Link, toServer: Bool, packet: Packet)? {
    var best: (link: Link, due: Duration, toServer: Bool)?
    for link in links {
      guard let (due, toServer) = arrival(link), due <= now else { continue }
      if best.map({ due < $0.due }) ?? true { best = (link, due, toServer) }
    }
    guard let (link, _, toServer) = best else { return nil }
    let packet =
      toServer ? link.toServer.packets.removeFirst() : link.toClient.packets.removeFirst()
    if case .close = packet.packet {
      if toServer { link.isOverForServer = true } else { link.isOverForClient = true }
    }
    forgetOld()
    return (link, toServer, packet.packet)
  }

  /// Removes and returns the frames that arrive at the server together with the one that ``next()`` has returned.
  func nextFrames(of link: Link) -> [[UInt8]] {
    var frames: [[UInt8]] = []
    while let (due, toServer) = arrival(link), due <= now, toServer,
      case .frame(let frame)? = link.toServer.packets.first?.packet
    {
      link.toServer.packets.removeFirst()
      frames.append(frame)
    }
    return frames
  }

  private func arrival(_ link: Link) -> (due: Duration, toServer: Bool)? {
    let healed = outages[link.client] ?? .zero
    let up = link.toServer.packets.first.map { max($0.due, healed) }
    let down = link.toClient.packets.first.map { $0.isLocal ? $0.due : max($0.due, healed) }
    switch (up, down) {
    case (let up?, let down?): return up <= down ? (up, true) : (down, false)
    case (let up?, nil): return (up, true)
    case (nil, let down?): return (down, false)
    case (nil, nil): return nil
    }
  }

  private func forgetOld() { links.removeAll(where: \.isOver) }
}
