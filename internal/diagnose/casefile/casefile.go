package casefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/capture"
	"github.com/linerate/linerate/internal/traffic"
)

// Schema is the value of the key schema in every file.
const Schema = "linerate.case/1"

// ErrFormat is in every error of [Read] for content that is not a case.
var ErrFormat = errors.New("not a linerate case")

// maxBytes bounds what [Read] reads. The case of two hosts with 64 queues and 40 VLANs has about
// two megabytes.
const maxBytes = 64 << 20

// File is the form of a stored case.
type File struct {
	Schema   string        `json:"schema"`
	Linerate string        `json:"linerate"` // version of the program that wrote the file
	Time     time.Time     `json:"time"`     // when it was written
	Case     evidence.Case `json:"case"`
}

// Write writes a case, scrubbed, as one JSON document.
func Write(w io.Writer, version string, c evidence.Case) error {
	c, err := scrubbed(c)
	if err != nil {
		return fmt.Errorf("write case: %w", err)
	}
	b, err := json.MarshalIndent(File{Schema: Schema, Linerate: version, Time: time.Now().UTC().Truncate(time.Second),
		Case: c}, "", " ")
	if err != nil {
		return fmt.Errorf("write case: %w", err)
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// Looks reports whether a file that begins with these bytes may be a case.
func Looks(begin []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(begin, " \t\r\n"), []byte("{"))
}

// Read reads a case that may come from anywhere. It reads at most 64 MiB. The error wraps
// [ErrFormat] where the content is not a case.
func Read(r io.Reader) (*evidence.Case, error) { return read(r, maxBytes) }

// read is Read with a limit in bytes.
func read(r io.Reader, limit int64) (*evidence.Case, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read case: %w", err)
	case int64(len(b)) > limit:
		return nil, fmt.Errorf("read case: larger than %d bytes: %w", limit, ErrFormat)
	}
	// Check the schema first, so that the error names another linerate document by its schema even
	// if its fields do not decode.
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, fmt.Errorf("read case: %w: %w", ErrFormat, err)
	}
	if head.Schema != Schema {
		return nil, fmt.Errorf("read case: the document is %q and not %q: %w", head.Schema, Schema, ErrFormat)
	}
	var f File
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("read case: %w: %w", ErrFormat, err)
	}
	if f.Case.Near == nil && len(f.Case.Runs) == 0 && len(f.Case.Watched) == 0 {
		return nil, fmt.Errorf("read case: it is empty: %w", ErrFormat)
	}
	return &f.Case, nil
}

// untouched reports whether the value of a key may look like an address without being one: version
// numbers also have four numbers with dots.
func untouched(key string) bool {
	return slices.Contains([]string{"kernel", "firmware_version", "driver_version", "knob", "time", "start_time",
		"boot_time"}, key)
}

// scrubbed returns a copy of a case without private values.
func scrubbed(c evidence.Case) (evidence.Case, error) {
	s := capture.NewScrubber(names(&c)...)
	// A copy through JSON leaves the caller's case unchanged.
	var tree any
	if err := through(c, &tree); err != nil {
		return c, err
	}
	var clean evidence.Case
	if err := through(replaced(tree, "", s.Text), &clean); err != nil {
		return c, err
	}
	eachHost(&clean, func(h *host.Snapshot) {
		h.Name = s.Host(h.Name)
		for i := range h.Warnings {
			h.Warnings[i] = s.Sentence(h.Warnings[i])
		}
		for i := range h.KernelLog {
			h.KernelLog[i].Text = s.Sentence(h.KernelLog[i].Text)
		}
		for i := range h.Mounts {
			h.Mounts[i].Source, h.Mounts[i].Path = "replaced", "replaced"
		}
	})
	eachRun(&clean, func(r *traffic.Result) {
		r.Ends.Local.Host, r.Ends.Remote.Host = s.Host(r.Ends.Local.Host), s.Host(r.Ends.Remote.Host)
		for i := range r.Warnings {
			r.Warnings[i] = s.Sentence(r.Warnings[i])
		}
	})
	for p, why := range clean.Refused {
		clean.Refused[p] = s.Sentence(why)
	}
	return clean, nil
}

// through copies one value into another by way of JSON. Numbers keep their digits.
func through(from, to any) error {
	b, err := json.Marshal(from)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(to)
}

// replaced returns a tree of JSON with every text replaced, including the keys of maps: those of
// counters contain the names of interfaces.
func replaced(tree any, key string, text func(string) string) any {
	switch v := tree.(type) {
	case string:
		if untouched(key) {
			return v
		}
		return text(v)
	case []any:
		for i := range v {
			v[i] = replaced(v[i], key, text)
		}
		return v
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[text(k)] = replaced(x, k, text)
		}
		return out
	}
	return tree
}

// names returns the names of the hosts of a case.
func names(c *evidence.Case) []string {
	var all []string
	eachHost(c, func(h *host.Snapshot) { all = append(all, h.Name) })
	eachRun(c, func(r *traffic.Result) { all = append(all, r.Ends.Local.Host, r.Ends.Remote.Host) })
	return all
}

// eachHost calls do with every snapshot of a case.
func eachHost(c *evidence.Case, do func(*host.Snapshot)) {
	all := []*host.Snapshot{c.Near, c.Far}
	for i := range c.Watched {
		all = append(all, c.Watched[i].Host)
	}
	for _, h := range all {
		if h != nil {
			do(h)
		}
	}
}

// eachRun calls do with every run and probe of a case.
func eachRun(c *evidence.Case, do func(*traffic.Result)) {
	for i := range c.Runs {
		do(&c.Runs[i])
	}
	for p, r := range c.Probes {
		do(&r)
		c.Probes[p] = r
	}
}
