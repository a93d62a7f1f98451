// Command release makes everything that a release consists of: programs for every system, packages,
// archives, container images, a Homebrew formula, a Nix flake, bills of materials, checksums and
// their signature.
//
//	release [-tree DIR] [-out DIR] [-targets linux/amd64,…] [-key FILE]
//
// # Model
//
// A release is a function of one commit: nothing in its files depends on the time, the directory or
// the machine of the build, so that anyone can make the same bytes and compare. The date of every
// file is that of the commit. dev/reproducible makes two and compares them.
//
// A tree whose HEAD has the tag vNUMBER is that version; any other tree is a snapshot of a commit
// after the version, with the commit's time in its own: 0.1.0+git20261126041811.
//
// Programs, manual pages and completions are of the tree; units and other files are those of dist,
// by directory (see places). dev/manual of this repository writes pages and completions. nfpm
// packs .deb, .rpm and .apk. An image is an OCI image layout in a tar file, written without a
// daemon.
//
// # Units
//
// Sizes are bytes; times are seconds since 1970 in UTC.
//
// # Sources
//
// The OCI image specification 1.1; CycloneDX 1.5; minisign(1); deb-version(7) and the rules of RPM
// and apk for the order of versions.
//
// # Limits
//
// The key is never in the tree. A host that cannot run the programs of linux/amd64 or linux/arm64
// builds no release, because the manual pages are what the programs print.
package main
