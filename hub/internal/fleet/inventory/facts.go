package inventory

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
)

// MostFacts is the largest size of facts as JSON, in bytes.
const MostFacts = 64 << 10

// Facts are what a host says of itself.
type Facts struct {
	Name           string            `json:"name"`
	OS             string            `json:"os"`
	Kernel         string            `json:"kernel"`
	Arch           string            `json:"arch"`
	Virtualization string            `json:"virtualization,omitempty"`
	CPU            string            `json:"cpu,omitempty"`
	CPUs           int               `json:"cpus"`
	Nodes          int               `json:"numa_nodes,omitempty"`
	MemoryBytes    int64             `json:"memory_bytes,omitempty"`
	Version        string            `json:"version"` // of linerate
	Cards          []Card            `json:"cards,omitempty"`
	Settings       map[string]string `json:"settings,omitempty"` // by knob
	Findings       []string          `json:"findings,omitempty"` // codes, the gravest first
	Kept           []Kept            `json:"kept,omitempty"`
	// why the journal of the host was not read; then Kept is not known
	JournalNotRead string `json:"journal_not_read,omitempty"`
	Measure        string `json:"measure,omitempty"` // HOST:PORT where other hosts may measure this one
}

// Card is one physical interface.
type Card struct {
	Name            string  `json:"name"`
	Driver          string  `json:"driver,omitempty"`
	DriverVersion   string  `json:"driver_version,omitempty"`
	Firmware        string  `json:"firmware,omitempty"`
	Model           string  `json:"model,omitempty"` // PCI id, vendor:device
	SpeedBitsPerSec float64 `json:"speed_bits_per_second,omitempty"`
	MTUBytes        int     `json:"mtu_bytes,omitempty"`
	RxRing          string  `json:"rx_ring,omitempty"` // current/max
}

// Kept is a change that should be in force.
type Kept struct {
	Knob   string `json:"knob"`
	Want   string `json:"want"`
	Have   string `json:"have,omitempty"` // absent: not readable
	Change string `json:"change"`         // its id in the journal of the host
}

// Drifted reports whether the knob is known to hold another value.
func (k Kept) Drifted() bool { return k.Have != "" && squeeze(k.Have) != squeeze(k.Want) }

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// Drift returns how many kept changes have drifted.
func (f *Facts) Drift() int {
	n := 0
	for _, k := range f.Kept {
		if k.Drifted() {
			n++
		}
	}
	return n
}

// Of makes facts of a snapshot and a verdict. A knob with its own name keeps it, so that settings
// of two hosts can be compared; what names an interface is left to the cards.
func Of(s *host.Snapshot, findings []evidence.Finding, version string) Facts {
	f := Facts{Name: s.Name, OS: s.OS, Kernel: s.Kernel, Arch: s.Arch, Virtualization: s.Virtualization,
		CPUs: len(s.CPUs), MemoryBytes: s.MemoryBytes, Version: version, Settings: make(map[string]string)}
	nodes := make(map[int]bool)
	for _, c := range s.CPUs {
		f.CPU = cmp.Or(f.CPU, c.Model)
		nodes[c.NUMANode] = true
	}
	f.Nodes = len(nodes)
	for i := range s.Interfaces {
		d := &s.Interfaces[i]
		if d.Virtual || !d.Up {
			continue
		}
		c := Card{Name: d.Name, Driver: d.Driver, SpeedBitsPerSec: d.SpeedBitsPerSec, MTUBytes: d.MTUBytes}
		if d.Card != nil {
			c.DriverVersion, c.Firmware, c.Model = d.Card.DriverVersion, d.Card.FirmwareVersion, d.Card.PCIID
		}
		if d.Rings != nil {
			c.RxRing = fmt.Sprintf("%d/%d", d.Rings.Rx.Current, d.Rings.Rx.Max)
		}
		f.Cards = append(f.Cards, c)
	}
	// The fastest first: it makes the class.
	sorting.StableFunc(f.Cards, func(a, b Card) int {
		return cmp.Or(cmp.Compare(b.SpeedBitsPerSec, a.SpeedBitsPerSec), strings.Compare(a.Name, b.Name))
	})
	for _, set := range s.Settings {
		f.Settings[strings.TrimPrefix(string(set.Knob), "sysctl:")] = squeeze(string(set.Value))
	}
	for i := range findings {
		f.Findings = append(f.Findings, string(findings[i].Code))
	}
	return f
}

// Encode returns the facts as JSON and their hash. Equal facts have equal bytes.
func (f *Facts) Encode() (b []byte, hash string, err error) {
	if b, err = json.Marshal(f); err != nil {
		return nil, "", err
	}
	return b, Hash(b), nil
}

// Hash returns the name of a content: 128 bits of its SHA-256 in hexadecimal digits.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// Decode reads what Encode returned. It takes the word of a stranger, and is bounded.
func Decode(b []byte) (Facts, error) {
	var f Facts
	if len(b) > MostFacts {
		return f, fmt.Errorf("facts of %d bytes: more than %d", len(b), MostFacts)
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return f, fmt.Errorf("read facts: %w", err)
	}
	return f, nil
}

// Class returns the name of the class of like hosts.
func (f *Facts) Class() string {
	var c Card
	if len(f.Cards) > 0 {
		c = f.Cards[0]
	}
	release := kernelOf(f.Kernel)
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s\x00%s\x00%s\x00%d\x00%s\x00%g\x00%d", c.Model, c.Firmware, c.Driver,
		driverVersion(c, f.Kernel), release, f.CPU, f.Nodes, f.Virtualization, c.SpeedBitsPerSec, c.MTUBytes)
	driver := strings.TrimSuffix(cmp.Or(c.Driver, "none"), "_core")
	name := strings.ToLower(driver + "-" + release)
	if c.SpeedBitsPerSec > 0 {
		name += "-" + speed(c.SpeedBitsPerSec)
	}
	return name + "-" + hex.EncodeToString(h.Sum(nil)[:3])
}

// kernelOf returns x.y of a kernel release.
func kernelOf(release string) string {
	parts := strings.SplitN(release, ".", 3)
	if len(parts) < 2 {
		return cmp.Or(release, "unknown")
	}
	minor, _, _ := strings.Cut(parts[1], "-")
	return parts[0] + "." + minor
}

// driverVersion leaves out the version of a driver that is the release of its kernel: it would make
// a class of each build.
func driverVersion(c Card, kernel string) string {
	if c.DriverVersion == kernel {
		return ""
	}
	return c.DriverVersion
}

// speed returns a speed as people name it: 10g, 2.5g, 100m.
func speed(bits float64) string {
	if bits >= 1e9 {
		return strings.TrimSuffix(fmt.Sprintf("%.1f", bits/1e9), ".0") + "g"
	}
	return fmt.Sprintf("%.0fm", bits/1e6)
}
