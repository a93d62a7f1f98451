package report

// SchemaAgent is the document of an agent that has begun to answer.
const SchemaAgent = "linerate.agent/1"

// AgentDocument is linerate.agent/1: where an agent answers, which group may ask, and about what.
type AgentDocument struct {
	Envelope
	Socket string `json:"socket"`
	Group  string `json:"group,omitempty"` // may ask besides root; absent: only root
	State  string `json:"state"`           // directory of the journal and the runs
	// Orders is what a fleet may do here; absent: this agent takes no orders.
	Orders *AgentOrders `json:"orders,omitempty"`
}

// AgentOrders is whose orders an agent takes, and what the policy of the host allows.
type AgentOrders struct {
	HostID string   `json:"host_id"` // in the fleet
	Keys   []string `json:"keys"`    // names of the people who may sign orders
	Policy []string `json:"policy"`  // what it allows, a sentence each
}

// NewAgent makes an agent document.
func NewAgent(e Envelope, socket, group, state string, orders *AgentOrders) *AgentDocument {
	return &AgentDocument{e.Of(SchemaAgent), socket, group, state, orders}
}
