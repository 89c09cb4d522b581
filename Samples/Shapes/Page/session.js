// A session with a Jetstream server: numbering, acknowledgement, and coming back after the
// connection was lost. It knows nothing of scopes.

const PING_INTERVAL = 10_000;
const SILENCE_LIMIT = 32_000;
const HANDSHAKE_TIMEOUT = 10_000;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15_000;

export class Session {
  /**
   * @param {string} url the server, such as ws://127.0.0.1:8080/
   * @param {object} on what the owner is told: status(word, why), begin() when a session was granted,
   *   message(message) for each one but pings, in the server's order, and turn() after each frame.
   */
  constructor(url, on) {
    this.url = url;
    this.on = on;
    this.socket = null;
    this.failures = 0;
    this.isDenied = false; // for good: the server would deny us again
    this.forget();
    addEventListener("online", () => this.hurry());
    addEventListener("offline", () => this.lose("the network is gone"));
    setInterval(() => this.watch(), 1_000);
  }

  /** Begins with nothing, as with a server that does not know us. */
  forget() {
    this.token = null;
    this.isReady = false;
    this.lastSent = 0; // the number of our last message
    this.lastSeen = 0; // the number of the last message we have seen of the server
    this.lastTold = 0; // the one that our last ping told the server
    this.kept = []; // what the server has not acknowledged: [{ index, compose }]
  }

  // Connecting

  open() {
    clearTimeout(this.retry);
    const token = this.token && `?x-jetstream-sessiontoken=${encodeURIComponent(this.token)}`;
    const socket = new WebSocket(this.url + (token ?? ""));
    this.socket = socket;
    this.heardAt = this.openedAt = performance.now();
    this.isReady = false;
    this.on.status("connecting");
    // Events of a socket that was given up come to nothing.
    const current = (handler) => (event) => this.socket === socket && handler(event);
    socket.onopen = current(() => {
      if (this.token) return this.ping(true);
      this.transmit({ type: "SessionCreate", index: 0, version: "0.1.0", params: {} });
    });
    socket.onmessage = current((event) => this.receive(event.data));
    socket.onclose = current((event) => this.closed(event));
  }

  closed({ code, reason }) {
    const error = parsed(reason);
    const why = error.message || reason || `code ${code}`;
    const isForgotten =
      code === 4097 || (code === 4096 && error.type === "session-token-unrecognized");
    if (isForgotten) {
      this.forget();
    } else if (code === 4096 && error.type !== "session-establish-timedout") {
      return this.refused({ ...error, message: why });
    }
    this.lose(why, error.retryAfter);
  }

  /** The server denies us a session: for as long as it says, or for good. */
  refused({ message, retryAfter }) {
    if (retryAfter != null) return this.lose(message, retryAfter);
    if (!this.drop()) return;
    this.isDenied = true;
    this.on.status("denied", message);
  }

  /** Gives the socket up. Returns false if there is none. */
  drop() {
    const socket = this.socket;
    if (!socket) return false;
    this.socket = null;
    this.isReady = false;
    socket.close();
    return true;
  }

  /**
   * Gives the socket up and tries again after a pause that grows with every failure.
   *
   * @param {number} [retryAfter] the number of seconds in which the server does not want to be asked. Up to a tenth more
   *   keeps its clients apart, which all have been told the same.
   */
  lose(why, retryAfter) {
    if (!this.drop()) return;
    const longest = Math.min(FIRST_PAUSE * 2 ** this.failures, LONGEST_PAUSE);
    const own = longest * (0.5 + 0.5 * Math.random());
    const wanted = retryAfter > 0 ? 1_000 * retryAfter * (1 + 0.1 * Math.random()) : 0;
    // A timer takes no longer time than this, which is more than three weeks.
    const pause = Math.min(Math.max(own, wanted), 2 ** 31 - 1);
    this.failures += 1;
    this.retry = setTimeout(() => this.open(), pause);
    this.on.status("waiting", why);
  }

  /** Does not wait for the end of a pause. */
  hurry() {
    if (this.socket || this.isDenied) return;
    this.failures = 0;
    this.open();
  }

  /** Once a second: pings when it is time, and notices a connection that has died silently. */
  watch() {
    if (!this.socket) return;
    const now = performance.now();
    if (now - this.heardAt > SILENCE_LIMIT) return this.lose("the server fell silent");
    if (!this.isReady) {
      if (now - this.openedAt > HANDSHAKE_TIMEOUT) this.lose("the server did not answer");
    } else if (now - this.pingedAt >= PING_INTERVAL) {
      this.ping(false);
    }
  }

  becomeReady() {
    this.isReady = true;
    this.failures = 0;
    this.pingedAt = performance.now();
    this.on.status("online");
  }

  // Receiving

  receive(text) {
    this.heardAt = performance.now();
    const frame = JSON.parse(text);
    for (const message of Array.isArray(frame) ? frame : [frame]) {
      if (!this.socket) return;
      this.take(message);
    }
    this.on.turn();
  }

  take(message) {
    if (message.type === "Ping") return this.pinged(message);
    if (message.type === "SessionCreateReply") return this.begin(message);
    if (message.index > 0) {
      if (message.index <= this.lastSeen) return;
      if (message.index > this.lastSeen + 1) return this.lose("a message is missing");
      this.lastSeen = message.index;
    }
    this.on.message(message);
  }

  begin({ sessionToken, error }) {
    if (error) return this.refused(error);
    this.token = sessionToken;
    this.becomeReady();
    this.on.begin();
  }

  pinged({ ack, resendMissing }) {
    this.kept = this.kept.filter((entry) => entry.index > ack);
    if (!resendMissing) return;
    // Composed anew, since by now we have seen more than when the message was first sent.
    for (const { index, compose } of this.kept) this.transmitTold({ ...compose(), index });
    if (!this.isReady) this.becomeReady();
  }

  // Sending

  /**
   * Numbers a message, and sends it until the server has acknowledged it. Only when `isReady`:
   * what is sent in front of a resend would have the server drop the resent messages.
   *
   * @param {(index: number) => object} compose gives the message; it is called for every sending.
   */
  send(compose) {
    const index = ++this.lastSent;
    this.kept.push({ index, compose });
    this.transmitTold({ ...compose(), index });
    return index;
  }

  /** The server has to know what we had seen when we composed a message: a ping in front says so. */
  transmitTold(message) {
    const isTold = this.lastSeen === this.lastTold;
    this.transmit(isTold ? message : [this.makePing(false), message]);
  }

  ping(resendMissing) {
    this.pingedAt = performance.now();
    this.transmit(this.makePing(resendMissing));
  }

  makePing(resendMissing) {
    // What asks for a resend says nothing about the messages that are sent again after it.
    this.lastTold = resendMissing ? 0 : this.lastSeen;
    return { type: "Ping", index: 0, ack: this.lastSeen, resendMissing };
  }

  transmit(frame) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(frame));
  }
}

/** The error in the reason of a close frame; an empty one if the reason is none, or is cut off. */
function parsed(reason) {
  try {
    return JSON.parse(reason) ?? {};
  } catch {
    return {};
  }
}
