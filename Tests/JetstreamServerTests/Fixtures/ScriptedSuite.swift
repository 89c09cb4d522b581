import Jetstream
import JetstreamServer

/// A suite about one shape on a canvas, in a scope whose server is the test.
protocol ScriptedSuite {
  var server: ScriptedServer { get }
  var shape: Shape { get }
}

extension ScriptedSuite {
  var canvas: Canvas { server.canvas }
  var scope: Scope { server.scope }
  var pending: PendingChangeSets { scope.pendingChangeSets }
  /// The replies to a fragment that is accepted, and to one that is not.
  var ok: FragmentReply { FragmentReply() }
  var no: FragmentReply { FragmentReply(error: .rejected("no")) }

  /// Puts the shape on the canvas and lets the client fetch it.
  func joinWithShape() {
    canvas.shapes = [shape]
    scope.flush()
    server.join()
  }

  func change(_ model: ModelObject, _ properties: JSONObject) -> SyncFragment {
    SyncFragment(
      .change, uuid: model.uuid, className: model is Canvas ? "Canvas" : "Shape",
      properties: properties)
  }
}
