package report

// SchemaHubCheck is the document of a check of the hub's configuration.
const SchemaHubCheck = "linerate.hub-check/1"

// HubCheckDocument is linerate.hub-check/1: the configuration that results from the file and the
// flags of linerate-hub.
type HubCheckDocument struct {
	Envelope
	File             string   `json:"file,omitempty"` // absent: none was read
	Listen           string   `json:"listen"`
	Data             string   `json:"data"` // directory of the history
	RetentionSeconds float64  `json:"retention_seconds"`
	MaxSizeBytes     int64    `json:"max_size_bytes"`
	Schedules        []string `json:"schedules"`    // names of the measurements at intervals
	Alerts           []string `json:"alerts"`       // names of the rules, including the built-in ones
	RemoteWrites     []string `json:"remote_write"` // addresses of stores that receive the samples
	Switches         []string `json:"switches"`     // names of the switches whose ports the hub reads
}

// NewHubCheck returns d with the envelope, and with empty lists instead of missing ones.
func NewHubCheck(e Envelope, d HubCheckDocument) *HubCheckDocument {
	d.Envelope = e.Of(SchemaHubCheck)
	for _, list := range []*[]string{&d.Schedules, &d.Alerts, &d.RemoteWrites, &d.Switches} {
		if *list == nil {
			*list = []string{} // JSON: an empty list, not null
		}
	}
	return &d
}
