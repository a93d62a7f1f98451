package report

import "github.com/linerate/linerate/internal/change/atboot"

// SchemaBootRecovery is the document of making recovery run at every start.
const SchemaBootRecovery = "linerate.boot-recovery/1"

// BootRecoveryDocument is linerate.boot-recovery/1: what runs recover at every start, and whether
// it is in place. Path and links are absent where only the content was requested.
type BootRecoveryDocument struct {
	Envelope
	atboot.Result
	Installed bool   `json:"installed"`
	Content   string `json:"content"`
}

// NewBootRecovery makes a boot recovery document of the file's content.
func NewBootRecovery(e Envelope, content string) *BootRecoveryDocument {
	d := &BootRecoveryDocument{Envelope: e.Of(SchemaBootRecovery), Content: content}
	FillSlices(d)
	return d
}
