package report

// SchemaHubCheck is the document of a look at the settings of the hub.
const SchemaHubCheck = "linerate.hub-check/1"

// HubCheckDocument is linerate.hub-check/1: what the file of settings and the flags of linerate-hub
// come to.
type HubCheckDocument struct {
	Envelope
	File             string   `json:"file,omitempty"` // absent: none was read
	Listen           string   `json:"listen"`
	Data             string   `json:"data"` // directory of the history
	RetentionSeconds float64  `json:"retention_seconds"`
	MaxSizeBytes     int64    `json:"max_size_bytes"`
	Schedules        []string `json:"schedules"`    // names of the measurements at intervals
	Alerts           []string `json:"alerts"`       // names of the rules, those that come with the hub among them
	RemoteWrites     []string `json:"remote_write"` // addresses of stores that get what is sampled
}

// NewHubCheck makes a hub-check document of what d has besides its envelope.
func NewHubCheck(e Envelope, d HubCheckDocument) *HubCheckDocument {
	d.Envelope = e.Of(SchemaHubCheck)
	for _, list := range []*[]string{&d.Schedules, &d.Alerts, &d.RemoteWrites} {
		if *list == nil {
			*list = []string{} // JSON: a list without members, and not null
		}
	}
	return &d
}
