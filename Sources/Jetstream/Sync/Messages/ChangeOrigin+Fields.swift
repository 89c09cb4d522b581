extension ChangeOrigin {
  /// Writes the fields that are not nil.
  package func write<Sink: FieldSink & ~Copyable>(to sink: inout Sink) {
    if let author { sink.put("author", .string(author)) }
    if let message { sink.put("message", .string(message)) }
    if let date { sink.put("date", .double(date.milliseconds / 1000)) }
    if let client { sink.put("madeBy", client) }
    if let seen { sink.put("seen", seen) }
  }
}
