import Foundation
import Jetstream

/// The `jetstream log` command.
enum LogCommand {
  typealias Status = JetstreamTool.Status

  static let usage = """
    usage: jetstream log <verify|tail|dump|show|diff|new-epoch> [options] DIRECTORY
           jetstream log blame DIRECTORY MODEL PROPERTY

    Reads a fragment log, also while a program writes it. Only new-epoch changes it.

    verify  reads everything, snapshots as well, and tells what is damaged or missing and where
      --json            the result as one line of JSON

    tail    prints the last records, one a line: number, tab, kind, tab, JSON
      -n N              so many (default 10)
      -f, --follow      goes on with each record that becomes durable

    dump    prints records the same way
      --from N          begins with record N (default: the first that is kept)
      --to N            ends with record N
      --kind KIND       only records of a kind, such as set
      --snapshot        prints the newest snapshot instead, with --to the newest up to N; not with --from

    blame   prints who has written a property of a model, by UUID and name on the wire, one a line: number, tab,
            date, tab, author, tab, what was written as JSON, tab, message; - for what is not known

    show    prints the scope as it was at a record: the root first, each model with its class, the beginning of its
            UUID and its properties; -> stands for a model that has its place elsewhere, and [N] for an indentation
            of N levels, if these are more than \(StateText.deepest)
      --at N            after record N, 0 for before the first one (default: the last one)
      --json            as canonical JSON, with whole UUIDs

    diff    prints what is different between two records: + for each model that came, - for each that went, ~ for
            each that changed, with the values before and after
      --from N          departs from the state after record N, and has to be given
      --to N            leads to the state after record N, also an earlier one (default: the last one)
      --json            as canonical JSON, with whole UUIDs

    show and diff know no classes: a model that a weak reference or a plain value names counts as being there.

    new-epoch
            begins another history in the log of a server, or in each log of a directory of jetstream serve, after a
            backup was put in place: clients that know more than it has get the full state, and are told. It tells
            of each log what it has done, and does nothing while a server uses it
      --accept-loss     also in a log that has lost records at its end, which a server refuses to open

    exit status: 0 all is well, 1 the log is damaged, 2 wrong usage, 3 it cannot be read or is in use
    """

  static func run(_ arguments: [String]) async -> Status {
    let options: LogOptions
    do {
      options = try LogOptions(arguments)
    } catch {
      Console.error("jetstream log: \(error.text)\n\n\(usage)")
      return .usage
    }
    if options.isHelp {
      Console.line(usage)
      return .success
    }
    if let name = nameOfPipe(in: options.directory) {
      Console.error("jetstream log: \(options.directory)/\(name) is no file that can be read.")
      return .failed
    }
    do {
      let reader = try LogReader(options.directory)
      // `verify` itself reports what is missing, in full, and `new-epoch` looks at each log.
      if ![.verify, .newEpoch].contains(options.action), try reader.firstSequence() == nil {
        return noLog(options)
      }
      switch options.action {
      case .verify: return try verify(reader, options)
      case .tail: try await tail(reader, options)
      case .dump: return try dump(reader, options)
      case .blame: try blame(reader, options)
      case .show: try show(reader, options)
      case .diff: try diff(reader, options)
      case .newEpoch: return await beginEpochs(options)
      }
      return .success
    } catch .damaged(let damage) {
      Console.error("jetstream log: \(LogError.damaged(damage))")
      return .damaged
    } catch {
      Console.error("jetstream log: \(error)")
      return .failed
    }
  }

  /// Returns the name of a segment or snapshot that is a pipe, a socket or a device; nil if there is none. No lines can
  /// be read from these.
  private static func nameOfPipe(in directory: String) -> String? {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    return names.sorted().first { name in
      guard name.hasPrefix("log-") || name.hasPrefix("snapshot-") || name == "lock" else {
        return false
      }
      var status = stat()
      guard stat("\(directory)/\(name)", &status) == 0 else { return false }
      return ![S_IFREG, S_IFDIR].contains(status.st_mode & S_IFMT)
    }
  }

  static func noLog(_ options: LogOptions) -> Status {
    Console.error("jetstream log: there is no log in \(options.directory).")
    return .failed
  }

  // MARK: Actions

  private static func verify(
    _ reader: LogReader, _ options: LogOptions
  ) throws(LogError) -> Status {
    let result = try reader.verify()
    if result.segments == 0, result.isWhole { return noLog(options) }
    let unreadable = try unreadableRecords(reader)
    let isWhole = result.isWhole && unreadable.isEmpty
    if options.isJSON {
      Console.line(json(result, unreadable).text)
      return isWhole ? .success : .damaged
    }
    let records = result.records.map { "records \($0.lowerBound) to \($0.upperBound)" }
    Console.line("\(records ?? "no records"), in \(counted(result.segments, "segment"))")
    for range in result.readable where range != result.records {
      Console.line(
        "records \(range.lowerBound) to \(range.upperBound) can be read behind the damage")
    }
    if !result.snapshots.isEmpty {
      Console.line("snapshots at \(result.snapshots.map(String.init).joined(separator: ", "))")
    }
    if result.abandonedBytes > 0 {
      Console.line(
        "\(counted(result.abandonedBytes, "byte")) were written twice after a failed sync")
    }
    if result.tornBytes > 0 {
      Console.line(
        "torn tail: \(counted(result.tornBytes, "byte")) of an incomplete record at the end")
    }
    for damage in result.damage { Console.line("damaged: \(damage)") }
    for text in unreadable { Console.line("unreadable: \(text)") }
    Console.line(isWhole ? "ok" : "damaged")
    return isWhole ? .success : .damaged
  }

  /// Returns descriptions of records, 100 at most, that are intact but do not contain a change set although their kind
  /// says so.
  private static func unreadableRecords(_ reader: LogReader) throws(LogError) -> [String] {
    var result: [String] = []
    do throws(LogError) {
      var cursor = try reader.read()
      while result.count < 100, let record = try cursor.next() {
        guard record.kind == .set else { continue }
        do throws(LogError) {
          _ = try ChangeSet(record)
        } catch {
          result.append("\(error)")
        }
      }
    } catch {
      // Reported by the check itself.
      guard case .damaged = error else { throw error }
    }
    return result
  }

  private static func json(_ result: LogVerification, _ unreadable: [String]) -> JSONValue {
    func number(_ number: Int?) -> JSONValue { number.map { .integer(Int64($0)) } ?? .null }
    return [
      "whole": .bool(result.isWhole && unreadable.isEmpty),
      "first": number(result.records?.lowerBound), "last": number(result.records?.upperBound),
      "readable": .array(
        result.readable.map { .array([number($0.lowerBound), number($0.upperBound)]) }),
      "segments": number(result.segments), "snapshots": .array(result.snapshots.map(number)),
      "tornBytes": number(result.tornBytes), "abandonedBytes": number(result.abandonedBytes),
      "damage": .array(
        result.damage.map { damage in
          [
            "file": .string(damage.file), "offset": number(damage.offset),
            "sequence": number(damage.sequence), "problem": .string(damage.problem),
          ]
        }),
      "unreadable": .array(unreadable.map { .string($0) }),
    ]
  }

  private static func counted(_ count: Int, _ noun: String) -> String {
    "\(count) \(noun)\(count == 1 ? "" : "s")"
  }

  private static func tail(_ reader: LogReader, _ options: LogOptions) async throws(LogError) {
    var last: [LogRecord] = []
    var cursor = try reader.read()
    while let record = try cursor.next() {
      last.append(record)
      // Half of them at a time: one at a time moves all others.
      if last.count / 2 > options.count { last.removeFirst(last.count - options.count) }
    }
    for record in last.suffix(options.count) { show(record) }
    guard options.follows else { return }
    var following = reader.follow(from: cursor.sequence).makeAsyncIterator()
    while let record = try await following.next() { show(record) }
  }

  private static func dump(
    _ reader: LogReader, _ options: LogOptions
  ) throws(LogError) -> Status {
    if options.wantsSnapshot {
      guard let snapshot = try reader.snapshot(upTo: options.last) else {
        let damage = try reader.verify().damage.first {
          $0.file.hasPrefix("snapshot-") && $0.sequence <= options.last
        }
        if let damage { throw .damaged(damage) }
        let place = options.last == .max ? "" : " up to record \(options.last)"
        Console.error("jetstream log: the log in \(options.directory) has no snapshot\(place).")
        return .failed
      }
      for record in snapshot.state + snapshot.kept where options.isWanted(record) { show(record) }
      return .success
    }
    var cursor = try reader.read(from: options.first)
    var isEmpty = true
    while cursor.sequence <= options.last, let record = try cursor.next() {
      isEmpty = false
      if options.isWanted(record) { show(record) }
    }
    // An empty log has all of its records, but none of those that are asked for by number.
    if isEmpty, let missing = options.first ?? (options.last == .max ? nil : options.last) {
      throw .notKept(sequence: missing, kept: try reader.verify().records)
    }
    return .success
  }

  private static func blame(_ reader: LogReader, _ options: LogOptions) throws(LogError) {
    for write in try reader.writes(to: options.property, of: options.model) {
      let content: JSONValue
      switch write.content {
      case .value(let value): content = value
      case .operations(let operations): content = .array(operations.map(\.json))
      }
      let date = write.date.map {
        $0.ISO8601Format(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
      }
      Console.line(
        [
          "\(write.sequence)", date ?? "-", text(write.author), content.text, text(write.message),
        ].joined(separator: "\t"))
    }
  }

  /// Returns the text in one line, without tabs; "-" if there is none.
  private static func text(_ words: String?) -> String {
    guard let words, !words.isEmpty else { return "-" }
    return String(words.map { $0.isNewline || $0 == "\t" ? " " : $0 })
  }

  private static func show(_ record: LogRecord) {
    let payload = String(decoding: record.payload, as: UTF8.self)
    Console.line("\(record.sequence)\t\(record.kind.rawValue)\t\(payload)")
  }
}
