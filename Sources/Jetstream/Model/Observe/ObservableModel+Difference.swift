/// Observers of what a collection has become, once a tick.
extension ObservableModel {
  /// Calls `handler` once in each tick in which the collection has become another, with the
  /// difference between its content when the observer was last told and its content now.
  ///
  /// ```swift
  /// canvas.observeDifference(self, \.shapes) { me, difference in
  ///   me.rows = me.rows.applying(difference)!
  /// }
  /// ```
  ///
  /// Removals carry offsets of the old content, insertions offsets of the new one. A model that was
  /// moved is removed and inserted, each change associated with the other; as few as possible are.
  /// What came and went, or went and came back, is not mentioned. What other observers have done to
  /// the collection in the same tick before this one was called is part of the difference.
  ///
  /// Cost: O(k log k) for the k steps since then, whatever the size of the collection; O(n log n)
  /// once the whole array was replaced.
  @discardableResult
  public func observeDifference<Observer: AnyObject, Element>(
    _ observer: Observer, _ keyPath: KeyPath<Self, ModelArray<Element>>,
    isolation: (any Actor)? = #isolation,
    _ handler: @escaping (Observer, CollectionDifference<Element>) -> Void
  ) -> ObservationToken {
    observeDifference(observer, at: index(of: keyPath), isolation: isolation) {
      [weak observer] (difference: CollectionDifference<Element>) in
      if let observer { handler(observer, difference) }
    }
  }

  /// Calls `handler` once in each tick in which the collection has become another, with the
  /// difference, until the token is cancelled.
  @discardableResult
  public func observeDifference<Element>(
    _ keyPath: KeyPath<Self, ModelArray<Element>>, isolation: (any Actor)? = #isolation,
    _ handler: @escaping (CollectionDifference<Element>) -> Void
  ) -> ObservationToken {
    observeDifference(nil, at: index(of: keyPath), isolation: isolation, handler)
  }

  private func observeDifference<Element: ModelObject>(
    _ observer: AnyObject?, at index: Int, isolation: (any Actor)?,
    _ handler: @escaping (CollectionDifference<Element>) -> Void
  ) -> ObservationToken {
    let record = ensureRecord()
    let property = schema.properties[index]
    let journal = StepJournal(index: index)
    record.ensureObservers().ensureExtras().add(journal)
    let observation = MindfulObservation(observer: observer, properties: PropertySet(index)) {
      [unowned record] isMuted in
      guard let model = record.model else { return }
      if isMuted { return journal.forget() }
      let difference = journal.take(now: model.list(of: property), as: Element.self)
      if !difference.isEmpty { handler(difference) }
    }
    add(observation, to: record, isolation: isolation)
    return observation
  }
}
