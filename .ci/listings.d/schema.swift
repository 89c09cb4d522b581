import Foundation
import Jetstream
import JetstreamServer

final class Board: ModelObject {
  @Property var title = ""
}

func listing() throws {
  // listing
}
