/// The only code that depends on the memory layout of model classes.
///
/// The runtime lists the stored fields of a class, including those of its superclasses: their
/// names, types and byte offsets. One object, made by `init()`, provides defaults and options.
enum SchemaReflection {
  static func makeSchema(of modelClass: ModelObject.Type) -> ModelSchema {
    let fields = storedProperties(of: modelClass)
    let recorder = PropertyRecorder(for: modelClass)
    let prototype = recorder.makePrototype()
    let start = UnsafeRawPointer(Unmanaged.passUnretained(prototype).toOpaque())
    let declared = recorder.takeOptions(of: fields.map { $0.access.valueType })
    let overriding = overridingOptions(of: modelClass, properties: Set(fields.map(\.name)))

    var properties: [ModelSchema.Property] = []
    for (index, field) in fields.enumerated() {
      let options = declared[index].merging(overriding[field.name] ?? PropertyOptions())
      precondition(
        field.access.valueType._storageKind != .model,
        "\(modelClass).\(field.name) refers to a model and must be optional.")
      if field.access.valueType._storageKind == .plain,
        case .dictionary(.reference(let name)) = field.access.valueType._propertyType
      {
        preconditionFailure(
          "\(modelClass).\(field.name) is a plain dictionary that holds models; declare it as "
            + "ModelDictionary<String, \(name)>.")
      }
      if let misuse = field.access.valueType._propertyType.misuse {
        preconditionFailure("\(modelClass).\(field.name) \(misuse)")
      }
      precondition(
        options.minSyncInterval == nil || field.access.valueType._storageKind == .plain,
        "\(modelClass).\(field.name) holds models, which a minSyncInterval cannot hold back: other "
          + "changes depend on them.")
      precondition(
        !options.isCounter || field.access.valueType is any FixedWidthInteger.Type,
        "\(modelClass).\(field.name) is a counter, but no whole number.")
      precondition(
        options.mergeRule == nil || field.access.valueType._storageKind == .plain,
        "\(modelClass).\(field.name) holds models, which need no merge rule.")
      precondition(
        options.mergeRule == nil || !options.isCounter,
        "\(modelClass).\(field.name) is a counter, and needs no merge rule.")
      let type = field.access.valueType._propertyType
      if let misuse = options.rules.misuse(of: type, isCounter: options.isCounter) {
        preconditionFailure("\(modelClass).\(field.name) \(misuse)")
      }
      let (defaultValue, makesModels) = defaultValue(of: field, at: start + field.offset)
      properties.append(
        ModelSchema.Property(
          name: field.name, options: options, index: index, defaultValue: defaultValue,
          makesModels: makesModels, offset: field.offset, access: field.access))
    }
    return ModelSchema(
      modelClass, wireName: modelClass.wireName, properties: properties)
  }

  private static func defaultValue(
    of field: Field, at address: UnsafeRawPointer
  ) -> (json: JSONValue, makesModels: Bool) {
    switch field.access.valueType._storageKind {
    case .collection: ([], field.access.list(at: address).count > 0)
    case .dictionary: ([:], field.access.table(at: address).count > 0)
    case .reference, .model: (.null, field.access.model(at: address) != nil)
    case .plain: (field.access.json(at: address), false)
    }
  }

  private struct Field {
    let name: String
    let offset: Int
    let access: any StoredProperty.Type
  }

  /// Returns the fields that are `@Property`, superclasses first. The wrapper's storage of `x` is
  /// named `_x`.
  private static func storedProperties(of modelClass: ModelObject.Type) -> [Field] {
    var fields: [Field] = []
    for index in 0..<fieldCount(modelClass) {
      var metadata = FieldMetadata()
      let type = fieldType(modelClass, index: index, metadata: &metadata)
      defer { metadata.freeName?(metadata.name) }
      guard let access = type as? any StoredProperty.Type else { continue }
      guard let text = metadata.name, text.pointee != 0 else {
        trapForMissingReflection(modelClass)
      }
      let name = String(cString: text)
      fields.append(
        Field(
          name: name.hasPrefix("_") ? String(name.dropFirst()) : name,
          offset: fieldOffset(modelClass, index: index), access: access))
    }
    return fields
  }

  /// Returns the options that the classes from the root down to `modelClass` give in
  /// ``ModelObject/propertyOptions``. Those of a subclass take precedence.
  private static func overridingOptions(
    of modelClass: ModelObject.Type, properties: Set<String>
  ) -> [String: PropertyOptions] {
    var result: [String: PropertyOptions] = [:]
    for ancestor in lineage(of: modelClass) {
      for (name, options) in ancestor.propertyOptions {
        precondition(
          properties.contains(name),
          "\(ancestor).propertyOptions names \"\(name)\", but \(modelClass) has no such property.")
        result[name] = (result[name] ?? PropertyOptions()).merging(options)
      }
    }
    return result
  }

  /// Returns the classes from the first below ``ModelObject`` down to `modelClass`.
  private static func lineage(of modelClass: ModelObject.Type) -> [ModelObject.Type] {
    var chain: [ModelObject.Type] = []
    var current: AnyClass? = modelClass
    while let next = current as? ModelObject.Type, next != ModelObject.self {
      chain.append(next)
      current = superclassOf(next)
    }
    return chain.reversed()
  }

  /// Returns the wire names of the classes above `modelClass`, the nearest first, without that of ``ModelObject``.
  static func superclassNames(of modelClass: ModelObject.Type) -> [String] {
    lineage(of: modelClass).dropLast().reversed().map(\.wireName)
  }

  /// Returns the number of properties that each class of the inheritance chain declares, from the
  /// root down.
  static func propertyCounts(of modelClass: ModelObject.Type) -> [Int] {
    var inherited = 0
    return lineage(of: modelClass).map { ancestor in
      var total = 0
      for index in 0..<fieldCount(ancestor) {
        var metadata = FieldMetadata()
        let type = fieldType(ancestor, index: index, metadata: &metadata)
        metadata.freeName?(metadata.name)
        if type is any StoredProperty.Type { total += 1 }
      }
      defer { inherited = total }
      return total - inherited
    }
  }

  static func trapForMissingReflection(_ modelClass: ModelObject.Type) -> Never {
    fatalError(
      "Jetstream finds the properties of \(modelClass) by reflection, which its module is built "
        + "without. Remove -disable-reflection-metadata and -reflection-metadata-for-debugger-only "
        + "from the module's compiler flags (SWIFT_REFLECTION_METADATA_LEVEL in Xcode).")
  }
}

// MARK: The runtime's entry points

private struct FieldMetadata {
  var name: UnsafePointer<CChar>?
  var freeName: (@convention(c) (UnsafePointer<CChar>?) -> Void)?
  var isStrong = false
  var isVar = false
}

@_silgen_name("swift_reflectionMirror_recursiveCount")
private func fieldCount(_ type: Any.Type) -> Int

@_silgen_name("swift_reflectionMirror_recursiveChildMetadata")
private func fieldType(
  _ type: Any.Type, index: Int, metadata: UnsafeMutablePointer<FieldMetadata>
) -> Any.Type

@_silgen_name("swift_reflectionMirror_recursiveChildOffset")
private func fieldOffset(_ type: Any.Type, index: Int) -> Int

private func superclassOf(_ type: AnyClass) -> AnyClass? { _getSuperclass(type) }
