import Foundation
import Jetstream

final class Item: ModelObject {
  @Property var stock = 0
  @Property var price = 0
}

final class Shop: ModelObject {
  @Property var items: ModelArray<Item> = []
}

// listing
