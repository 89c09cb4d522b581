// The document's public types, such as JSON values and fragments, are part of what an app imports with Jetstream.
@_exported import JetstreamDocument
