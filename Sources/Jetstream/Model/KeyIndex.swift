/// Counts the entries at which the searches for keys in a large ``ModelTable`` look, for tests.
final class KeyIndex {
  var visits = 0
}
