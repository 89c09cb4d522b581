extension ModelList {
  /// Returns this list with the change that leads from `before` to `after`; see ``CollectionContent``.
  func merging(from before: ModelList, to after: ModelList) -> ModelList {
    ModelList(
      CollectionContent.merge(
        base: Array(models), before: Array(before.models), after: Array(after.models)))
  }
}
