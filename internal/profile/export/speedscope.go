package export

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/linerate/linerate/internal/profile"
)

// The parts of speedscope's file format (file-format-spec.ts) that a sampled profile needs.
type speedscopeFile struct {
	Schema   string `json:"$schema"`
	Exporter string `json:"exporter"`
	Name     string `json:"name"`
	Active   int    `json:"activeProfileIndex"`
	Shared   struct {
		Frames []speedscopeFrame `json:"frames"`
	} `json:"shared"`
	Profiles []speedscopeProfile `json:"profiles"`
}

type speedscopeFrame struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"` // speedscope colours by it: the stage
}

type speedscopeProfile struct {
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Unit    string   `json:"unit"`
	Start   uint64   `json:"startValue"`
	End     uint64   `json:"endValue"`
	Samples [][]int  `json:"samples"`
	Weights []uint64 `json:"weights"`
}

// Speedscope writes the JSON of speedscope, one profile for each context.
func Speedscope(w io.Writer, p *profile.Profile, name string) error {
	f := speedscopeFile{Schema: "https://www.speedscope.app/file-format-schema.json", Exporter: "linerate", Name: name}
	f.Shared.Frames = []speedscopeFrame{}
	for _, fn := range p.Functions {
		f.Shared.Frames = append(f.Shared.Frames, speedscopeFrame{fn.Name, fn.Stage})
	}
	weight, unit := weightOf(p)
	index := make(map[string]int)
	for _, s := range p.Stacks {
		i, known := index[s.Context]
		if !known {
			i = len(f.Profiles)
			index[s.Context] = i
			f.Profiles = append(f.Profiles, speedscopeProfile{Type: "sampled", Name: s.Context, Unit: unit})
		}
		one := &f.Profiles[i]
		stack := slices.Clone(s.Functions)
		slices.Reverse(stack)
		one.Samples = append(one.Samples, stack)
		one.Weights = append(one.Weights, uint64(float64(s.Samples)*weight))
		one.End += uint64(float64(s.Samples) * weight)
	}
	if f.Profiles == nil { // speedscope refuses a file without a profile
		f.Profiles = []speedscopeProfile{{Type: "sampled", Name: "idle", Unit: unit, Samples: [][]int{}, Weights: []uint64{}}}
	}
	if err := json.NewEncoder(w).Encode(f); err != nil {
		return fmt.Errorf("write speedscope file: %w", err)
	}
	return nil
}

// weightOf returns what one sample weighs: nanoseconds where the event has time.
func weightOf(p *profile.Profile) (weight float64, unit string) {
	if p.BusySeconds > 0 && p.Busy > 0 {
		return p.BusySeconds * 1e9 / float64(p.Busy), "nanoseconds"
	}
	return 1, "none"
}
