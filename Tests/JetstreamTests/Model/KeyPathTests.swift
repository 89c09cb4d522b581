import Testing

@testable import Jetstream

@Suite(.paced) struct KeyPathTests {
  let listener = Listener()

  @Test("a key path that is made anew each time is tried once")
  func fresh() {
    final class Held: ModelObject {
      nonisolated(unsafe) static var made = 0
      required init() {
        super.init()
        Self.made += 1
      }
    }
    final class Holder: ModelObject {
      @Property var held: Held?
      @Property var number = 0
      subscript(place: Int) -> Held? {
        get { held }
        set { held = newValue }
      }
      /// Returns the number in some states only.
      subscript(limit limit: Int) -> Int {
        get { number > 2 ? limit : number }
        set { number = newValue }
      }
    }
    let holder = Holder()
    let scope = manualScope(holder)
    // Each key path captures its argument, and is an object of its own.
    func observe(_ place: Int) {
      holder.observeChange(listener, \.[place], isolation: here()) { $0.called() }
      holder.observeChange(listener, \.[limit: place], isolation: here()) { $0.log.append("") }
    }
    observe(0)
    let made = Held.made
    #expect(made > 0)
    for _ in 0..<200 { observe(0) }
    #expect(Held.made == made)
    holder.held = Held()
    scope.ticker.tick()
    #expect(listener.count == 201 && listener.log.isEmpty)
    holder.number = 5
    scope.ticker.tick()
    #expect(listener.log.isEmpty)
    holder.number = 1
    scope.ticker.tick()
    #expect(listener.count == 201 && listener.log.count == 201)
  }

  @Test("a getter that takes no negative value can be observed")
  func noNegative() {
    final class Book: ModelObject {
      nonisolated(unsafe) static var wasNegative = false
      @Property var stored = 0
      var page: Int {
        get {
          // Stands for a precondition.
          if stored < 0 { Self.wasNegative = true }
          return stored
        }
        set { stored = newValue }
      }
    }
    let book = Book()
    let scope = manualScope(book)
    book.observeChange(listener, \.page, isolation: here()) { $0.called() }
    #expect(!Book.wasNegative)
    book.page = 3
    scope.ticker.tick()
    #expect(listener.count == 1)
  }
}
