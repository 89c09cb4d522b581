import Foundation
import Jetstream

final class Listing: ModelObject {
  // listing
}
