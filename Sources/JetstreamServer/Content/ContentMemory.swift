import Foundation

/// A host's record of models that are not, or no longer, in its content.
protocol ContentMemory: AnyObject {
  /// Returns a model that was removed from the scope and that some session may still know.
  func departed(_ uuid: UUID) -> (any HostedModel)?
  /// Returns whether the addition of a model was rejected and some session may not know that yet.
  func wasRejected(_ uuid: UUID) -> Bool
}
