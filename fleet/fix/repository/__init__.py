"""Git, work trees and patches: what the fleet reads of a repository, and what it may change in it."""
