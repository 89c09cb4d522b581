import Jetstream

/// The past of a scope, without the classes of its models.
extension LogCommand {
  static func show(_ reader: LogReader, _ options: LogOptions) throws(LogError) {
    let rows = try reader.rows(at: options.at)
    if options.isJSON { return Console.line(rows.canonicalJSON) }
    for line in StateText(rows).lines { Console.line(line) }
  }

  static func diff(_ reader: LogReader, _ options: LogOptions) throws(LogError) {
    let difference = try reader.difference(
      from: options.first ?? 0, to: options.last == .max ? nil : options.last)
    if options.isJSON { return Console.line(difference.json.canonicalText) }
    for line in DifferenceText(difference).lines { Console.line(line) }
  }
}
