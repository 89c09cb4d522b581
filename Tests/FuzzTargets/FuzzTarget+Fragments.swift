import Jetstream

extension FuzzTarget {
  /// Fragments read straight from text, which has to be what comes of reading JSON first.
  static let fragments = FuzzTarget(
    "fragments",
    seeds: [
      "[\(change),\(add)]", "[\(add),\(odd),\(change)]", edit, "[\(edit),\(add)]", change,
      " \(add) ", odd,
      "[\(change),\(change),{}]", #"[{"type":"change"},null,1]"#, "[]",
    ],
    words: fragmentWords
  ) { bytes in
    switch (one(bytes), oneByValue(bytes)) {
    case (.success(let fragment), .success(let expected)):
      try require(isSame(fragment, expected), "read \(fragment), not \(expected)")
      var text: [UInt8] = []
      fragment.write(to: &text)
      var again: [UInt8] = []
      try SyncFragment(parsing: text).write(to: &again)
      try require(again == text, "\(fragment) changes when it is written")
    case (.failure(let error), .failure(let expected)):
      try require(error == expected, "threw \(error), not \(expected)")
    case (let read, let expected): throw Finding("\(read), not \(expected)")
    }
    switch (array(bytes), arrayByValue(bytes)) {
    case (.success(let fragments), .success(let expected)):
      try require(
        fragments.count == expected.count && zip(fragments, expected).allSatisfy(isSame),
        "read \(fragments), not \(expected)")
    case (.failure(let error), .failure(let expected)):
      try require(error == expected, "threw \(error), not \(expected)")
    case (let read, let expected): throw Finding("\(read), not \(expected)")
    }
  }

  static let change =
    #"{"type":"change","uuid":"4d01cd3b-ae1a-429c-ae75-4c211b0adefa","clsName":"Shape","#
    + #""properties":{"x":0.37,"y":999.5,"width":10,"color":2654435761}}"#
  static let edit =
    #"{"type":"change","uuid":"4d01cd3b-ae1a-429c-ae75-4c211b0adefa","clsName":"Shape","#
    + #""properties":{},"operations":{"parts":[{"insert":"4d01cd3b-ae1a-429c-ae75-4c211b0adefa","#
    + #""after":["4d01cd3b-ae1a-429c-ae75-4c211b0adefa"]},{"move":"#
    + #""4d01cd3b-ae1a-429c-ae75-4c211b0adefa","after":[]},{"remove":"#
    + #""4d01cd3b-ae1a-429c-ae75-4c211b0adefa"}],"n":[{"add":-7}]}}"#
  static let add =
    #"{"properties":{"name":"é","list":["4d01cd3b",null]},"clsName":"A name of many letters","#
    + #""uuid":"4D01CD3B-AE1A-429C-AE75-4C211B0ADEFA","type":"add"}"#
  /// With an escape, a field more and white space.
  static let odd =
    #" { "type" : "\u0061dd", "uuid" : "4d01cd3b-ae1a-429c-ae75-4c211b0adefa", "future":[{}], "#
    + #""clsName" : "Shape" , "properties" : { } } "#

  static let fragmentWords =
    jsonWords + [
      change, add, edit, #""operations":"#, #"[{"add":1}]"#, #""after":[]"#, #""type":"add","#,
      #""type":"change","#, #""type":"#, #""uuid":"#,
      #""clsName":"Shape""#, #""clsName":"#, #""properties":{}"#, #""properties":"#,
      #""4d01cd3b-ae1a-429c-ae75-4c211b0adefa""#,
    ]

  /// Whether they are equal to the letter: `==` lets numbers, keys and text differ in form.
  static func isSame(_ left: SyncFragment, _ right: SyncFragment) -> Bool {
    left == right && left.json.text.utf8.elementsEqual(right.json.text.utf8)
      && left.properties.keys == right.properties.keys
  }

  private static func one(_ bytes: [UInt8]) -> Result<SyncFragment, FragmentTextError> {
    Result { () throws(FragmentTextError) in try SyncFragment(parsing: bytes) }
  }

  private static func array(_ bytes: [UInt8]) -> Result<[SyncFragment], FragmentTextError> {
    Result { () throws(FragmentTextError) in try SyncFragment.array(parsing: bytes) }
  }

  private static func oneByValue(_ bytes: [UInt8]) -> Result<SyncFragment, FragmentTextError> {
    Result { () throws(FragmentTextError) in
      let json = try value(bytes)
      do throws(FragmentError) {
        return try SyncFragment(json: json)
      } catch {
        throw .notFragment(error)
      }
    }
  }

  private static func arrayByValue(_ bytes: [UInt8]) -> Result<[SyncFragment], FragmentTextError> {
    Result { () throws(FragmentTextError) in
      guard case .array(let elements) = try value(bytes) else { throw .notAnArray }
      var fragments: [SyncFragment] = []
      for (position, element) in elements.enumerated() {
        do throws(FragmentError) {
          fragments.append(try SyncFragment(json: element))
        } catch {
          throw .badElement(position: position, error: error)
        }
      }
      return fragments
    }
  }

  private static func value(_ bytes: [UInt8]) throws(FragmentTextError) -> JSONValue {
    do throws(JSONError) {
      return try JSONValue(parsing: bytes)
    } catch {
      throw .notJSON(error)
    }
  }
}
