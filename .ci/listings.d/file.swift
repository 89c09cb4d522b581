import Foundation
import Jetstream

// listing
