import JetstreamWebSocket

/// The page that shows the drawing in a browser. Its files are compiled into the program, so that
/// it works wherever the program is started or copied to.
enum Page {
  @Sendable
  static func respond(to request: HTTPRequest) async -> HTTPResponse {
    switch request.path {
    case "/", "/index.html": file(PackageResources.index_html, "text/html")
    case "/style.css": file(PackageResources.style_css, "text/css")
    case "/drawing.js": file(PackageResources.drawing_js, "text/javascript")
    case "/replica.js": file(PackageResources.replica_js, "text/javascript")
    case "/session.js": file(PackageResources.session_js, "text/javascript")
    default: .text("Not found\n", status: 404)
    }
  }

  private static func file(_ bytes: [UInt8], _ type: String) -> HTTPResponse {
    HTTPResponse(
      status: 200,
      headers: ["Content-Type": "\(type); charset=utf-8", "Cache-Control": "no-cache"],
      body: bytes)
  }
}
