/// The authors that logs give to those change sets of a scope that name none. The change sets of the scope itself go on
/// naming none: what a server tells its clients is no matter of a log.
struct DefaultAuthors {
  /// One of the authors. A log holds it for as long as it records the scope.
  final class Author {
    let name: String

    fileprivate init(_ name: String) { self.name = name }
  }

  private struct Entry { weak var author: Author? }
  private var entries: [Entry] = []

  var names: [String] { entries.compactMap { $0.author?.name } }

  /// Adds an author, for as long as the caller holds it.
  mutating func add(_ name: String) -> Author {
    let author = Author(name)
    entries.removeAll { $0.author == nil }
    entries.append(Entry(author: author))
    return author
  }
}
