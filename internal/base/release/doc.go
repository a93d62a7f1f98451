// Package release holds the version of linerate.
//
// # Model
//
// [Number] is the version of the source tree; a test compares it with the newest release in
// CHANGELOG.md. The build adds the revision, which distinguishes two builds of one version.
//
// # Units
//
// Versions follow Semantic Versioning 2.0.0; the revision is build metadata.
//
// # Sources
//
// https://semver.org, items 9 and 10.
//
// # Limits
//
// A build without make has no revision.
package release
