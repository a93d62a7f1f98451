package report

import "runtime"

// SchemaVersion is the document of a program that was asked for its version.
const SchemaVersion = "linerate.version/1"

// VersionDocument is linerate.version/1: the envelope has the version, and the system and the
// architecture that the program was built for.
type VersionDocument struct {
	Envelope
	Program string `json:"program"` // linerate or linerate-hub
	Go      string `json:"go"`      // release of the compiler, such as go1.24.4
}

// NewVersion makes the version document of the running program.
func NewVersion(e Envelope, program string) *VersionDocument {
	return &VersionDocument{e.Of(SchemaVersion), program, runtime.Version()}
}
