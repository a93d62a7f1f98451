package report

// SchemaAgent is the document of an agent that has begun to answer.
const SchemaAgent = "linerate.agent/1"

// AgentDocument is linerate.agent/1: where an agent answers, which group may ask, and about what.
type AgentDocument struct {
	Envelope
	Socket string `json:"socket"`
	Group  string `json:"group,omitempty"` // may ask besides root; absent: only root
	State  string `json:"state"`           // directory of the journal and the runs
}

// NewAgent makes an agent document.
func NewAgent(e Envelope, socket, group, state string) *AgentDocument {
	return &AgentDocument{e.Of(SchemaAgent), socket, group, state}
}
