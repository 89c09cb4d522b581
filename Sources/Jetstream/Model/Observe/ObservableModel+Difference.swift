/// Observers that get the difference of a collection once per tick.
extension ObservableModel {
  /// Calls `handler` once in each tick in which the collection has changed, with the difference
  /// between its content at the previous call and its content now. The first difference counts from
  /// the registration.
  ///
  /// ```swift
  /// canvas.observeDifference(self, \.shapes) { me, difference in
  ///   me.rows = me.rows.applying(difference)!
  /// }
  /// ```
  ///
  /// Removals have offsets in the old content, insertions have offsets in the new content. A moved
  /// model is removed and inserted, with the two changes associated; as few models as possible are
  /// moved. A model that came and went, or went and came back to its place, is not part of the
  /// difference. If other observers change the collection in the same tick before this one is
  /// called, their changes are included.
  ///
  /// Cost: O(k log k) for k steps since the previous call, whatever the size of the collection; O(n
  /// log n) if the whole array was replaced.
  @discardableResult
  public func observeDifference<Observer: AnyObject, Element>(
    _ observer: Observer, _ keyPath: KeyPath<Self, ModelArray<Element>>,
    isolation: any Actor = #isolation,
    _ handler: @escaping (Observer, CollectionDifference<Element>) -> Void
  ) -> ObservationToken {
    observeDifference(observer, at: index(of: keyPath), isolation: isolation) {
      [weak observer] (difference: CollectionDifference<Element>) in
      if let observer { handler(observer, difference) }
    }
  }

  /// Calls `handler` once in each tick in which the collection has changed, with the difference to
  /// its content at the previous call, until the token is cancelled.
  @discardableResult
  public func observeDifference<Element>(
    _ keyPath: KeyPath<Self, ModelArray<Element>>, isolation: any Actor = #isolation,
    _ handler: @escaping (CollectionDifference<Element>) -> Void
  ) -> ObservationToken {
    observeDifference(nil, at: index(of: keyPath), isolation: isolation, handler)
  }

  private func observeDifference<Element: ModelObject>(
    _ observer: AnyObject?, at index: Int, isolation: any Actor,
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
