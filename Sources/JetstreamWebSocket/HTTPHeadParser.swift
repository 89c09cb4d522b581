/// The reason why the head of an HTTP message could not be read.
enum HTTPHeadFault: Error, Sendable, Equatable {
  /// A line is not what HTTP/1 allows at its place.
  case malformed
  /// The head is larger than 16 KiB.
  case tooLarge
  /// There are more than 100 header fields.
  case tooManyFields
  /// The major version is not 1.
  case unsupportedVersion

  /// The status code of the server's answer.
  var status: Int {
    switch self {
    case .malformed: 400
    case .tooLarge, .tooManyFields: 431
    case .unsupportedVersion: 505
    }
  }
}

/// Reads the head of an HTTP/1 message from pieces of any size: its first line and its fields.
///
/// Lines must end in CR LF and must not be folded, so that no two readers can see different heads.
/// Memory is bounded by the limit on the head's size.
struct HTTPHeadParser: Sendable {
  static let maximumBytes = 16 << 10
  static let maximumFields = 100

  private var size = 0
  private var line: [UInt8] = []
  private var startLine: String?
  private var headers = HTTPHeaders()
  private var fault: HTTPHeadFault?

  /// True while no byte of a head was received.
  var isEmpty: Bool { size == 0 }

  /// Takes what belongs to the head off the front of `bytes`. Returns the head once it is
  /// complete, and is then ready for the next; what follows the head stays in `bytes`.
  mutating func parse(
    _ bytes: inout ArraySlice<UInt8>
  ) throws(HTTPHeadFault) -> (startLine: String, headers: HTTPHeaders)? {
    if let fault { throw fault }
    do throws(HTTPHeadFault) {
      while let byte = bytes.popFirst() {
        size += 1
        guard size <= Self.maximumBytes else { throw .tooLarge }
        if byte == 0x0A {
          guard line.last == 0x0D else { throw .malformed }
          line.removeLast()
          if try finishLine(), let startLine {
            let head = (startLine, headers)
            self = HTTPHeadParser()
            return head
          }
        } else {
          // A bare CR, or any control character but the tab, is no part of a line.
          guard line.last != 0x0D, byte >= 0x20 || byte == 0x09 || byte == 0x0D, byte != 0x7F
          else { throw .malformed }
          line.append(byte)
        }
      }
    } catch {
      fault = error
      throw error
    }
    return nil
  }

  /// Reads the line just ended. Returns true for the empty line after the fields.
  private mutating func finishLine() throws(HTTPHeadFault) -> Bool {
    defer { line.removeAll(keepingCapacity: true) }
    guard startLine != nil else {
      // Empty lines before the first one are passed over, as RFC 9112 2.2 advises.
      if !line.isEmpty { startLine = String(decoding: line, as: UTF8.self) }
      return false
    }
    if line.isEmpty { return true }
    guard headers.fields.count < Self.maximumFields else { throw .tooManyFields }
    guard let colon = line.firstIndex(of: 0x3A) else { throw .malformed }
    let name = String(decoding: line[..<colon], as: UTF8.self)
    guard HTTPHeaders.isToken(name) else { throw .malformed }
    let value = String(decoding: line[(colon + 1)...], as: UTF8.self)
    headers.append(name: name, value: HTTPHeaders.trimmed(value))
    return false
  }
}

extension HTTPRequest {
  /// Reads a request's first line and checks the fields that every request must have right.
  static func parse(
    startLine: String, headers: HTTPHeaders
  ) throws(HTTPHeadFault) -> HTTPRequest {
    let parts = startLine.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 3, HTTPHeaders.isToken(parts[0]) else { throw .malformed }
    let version = Array(parts[2].utf8)
    guard version.count == 8, parts[2].hasPrefix("HTTP/"), version[6] == 0x2E,
      (0x30...0x39).contains(version[5]), (0x30...0x39).contains(version[7])
    else { throw .malformed }
    guard version[5] == 0x31 else { throw .unsupportedVersion }
    let minor = Int(version[7] - 0x30)

    let target = try RequestTarget(parts[1])
    let hosts = headers.values(for: "Host")
    guard hosts.count == 1 || (hosts.isEmpty && minor == 0) else { throw .malformed }
    var headers = headers
    if let authority = target.authority {
      headers.remove("Host")
      headers.append(name: "Host", value: authority)
    }
    return HTTPRequest(
      method: String(parts[0]), target: target.path, minorVersion: minor, headers: headers)
  }
}

/// Reads the status code of a response's first line.
func parseStatusLine(_ line: String) throws(HTTPHeadFault) -> Int {
  let parts = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
  guard parts.count >= 2, parts[0] == "HTTP/1.1" || parts[0] == "HTTP/1.0" else {
    throw .malformed
  }
  guard parts[1].utf8.count == 3, let status = Int(parts[1]), (100...999).contains(status) else {
    throw .malformed
  }
  return status
}
