// Package release says which version of linerate this is.
//
// # Model
//
// [Number] is the version of the source tree; a test holds it to the newest release in
// CHANGELOG.md. The build adds the revision, which distinguishes two builds of one version.
//
// # Units
//
// Versions are those of Semantic Versioning 2.0.0; the revision is build metadata.
//
// # Sources
//
// https://semver.org, items 9 and 10.
//
// # Limits
//
// A build without make has no revision.
package release
