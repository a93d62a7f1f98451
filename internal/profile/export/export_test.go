package export_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/linerate/linerate/internal/profile"
	"github.com/linerate/linerate/internal/profile/export"
)

// sample is a profile with two contexts, a program, and names that need escaping.
func sample() *profile.Profile {
	b := profile.NewBuilder("cpu-clock", true)
	kernel := func(names ...string) []int {
		var all []int
		for _, n := range names {
			all = append(all, b.Frame(profile.Frame{Name: n}))
		}
		return all
	}
	b.Add(profile.Seen{Frames: kernel("_copy_from_iter", "tcp_sendmsg_locked", "tcp_sendmsg", "do_syscall_64"),
		Offset: -1, Process: "iperf", Count: 30})
	b.Add(profile.Seen{Frames: kernel("_raw_spin_unlock_irqrestore", "try_to_wake_up", "sock_def_readable", "tcp_v4_rcv",
		"net_rx_action", "handle_softirqs"), Offset: -1, Process: "idle", Count: 60})
	b.Add(profile.Seen{Frames: []int{b.Frame(profile.Frame{Name: "a <b> & c;d", Kind: profile.UserFrame})}, Offset: -1,
		Process: "a <b> & c;d", Count: 10})
	p := b.Finish(profile.Window{SampleSeconds: 0.001, PacketsBySlice: []float64{1000}})
	p.Period = 1_000_000
	packets := uint64(1000)
	p.PacketsTotal = &packets
	return p
}

// TestPprof opens the file with go tool pprof itself: names of the kernel, times and labels are
// there.
func TestPprof(t *testing.T) {
	name := filepath.Join(t.TempDir(), "cpu.pb.gz")
	var b bytes.Buffer
	if err := export.Pprof(&b, sample(), 1e18); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		cmd := exec.Command("go", append(append([]string{"tool", "pprof"}, args...), name)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go tool pprof %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	top := run("-top")
	for _, want := range []string{`60ms\s+60\S*%.*try_to_wake_up`, `30ms\s+30\S*%.*_copy_from_iter`, `Type: cpu`} {
		if !regexp.MustCompile(want).MatchString(top) {
			t.Errorf("go tool pprof -top lacks %q:\n%s", want, top)
		}
	}
	if tags := run("-tags"); !regexp.MustCompile(`(?s)stage:.*60.*socket/syscall`).MatchString(tags) {
		t.Errorf("go tool pprof -tags:\n%s", tags)
	}
	if c := run("-comments"); !strings.Contains(c, "60 samples were moved") {
		t.Errorf("comments:\n%s", c)
	}
}

// speedscopeSchema is what speedscope requires of a sampled profile (its file-format-spec.ts), as a
// JSON schema.
const speedscopeSchema = `{"type":"object","required":["$schema","shared","profiles"],"properties":{
 "$schema":{"const":"https://www.speedscope.app/file-format-schema.json"},
 "shared":{"type":"object","required":["frames"],"properties":{"frames":{"type":"array","items":
  {"type":"object","required":["name"],"properties":{"name":{"type":"string"},"file":{"type":"string"}}}}}},
 "profiles":{"type":"array","minItems":1,"items":{"type":"object",
  "required":["type","name","unit","startValue","endValue","samples","weights"],"properties":{
   "type":{"const":"sampled"},"unit":{"enum":["none","nanoseconds","microseconds","milliseconds","seconds","bytes"]},
   "samples":{"type":"array","items":{"type":"array","items":{"type":"integer","minimum":0}}},
   "weights":{"type":"array","items":{"type":"number","minimum":0}}}}}}}`

func TestSpeedscope(t *testing.T) {
	var b bytes.Buffer
	if err := export.Speedscope(&b, sample(), "near"); err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.UnmarshalJSON(strings.NewReader(speedscopeSchema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("speedscope.json", schema); err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.MustCompile("speedscope.json").Validate(doc); err != nil {
		t.Error(err)
	}
	var f struct {
		Shared   struct{ Frames []struct{ Name string } }
		Profiles []struct {
			Name     string
			Samples  [][]int
			Weights  []uint64
			EndValue uint64
		}
	}
	if err := json.Unmarshal(b.Bytes(), &f); err != nil {
		t.Fatal(err)
	}
	all := uint64(0)
	for _, p := range f.Profiles {
		sum := uint64(0)
		for i, s := range p.Samples {
			sum += p.Weights[i]
			for _, frame := range s {
				if frame >= len(f.Shared.Frames) {
					t.Errorf("frame %d of %d", frame, len(f.Shared.Frames))
				}
			}
		}
		if sum != p.EndValue {
			t.Errorf("%s: weights sum to %d, the end is %d", p.Name, sum, p.EndValue)
		}
		all += sum
	}
	if all != 100e6 {
		t.Errorf("%d ns in all, want 100 ms", all)
	}
	// The root comes first.
	for _, p := range f.Profiles {
		if p.Name == profile.ContextSoftIRQ && f.Shared.Frames[p.Samples[0][0]].Name != "handle_softirqs" {
			t.Errorf("root of a softirq is %q", f.Shared.Frames[p.Samples[0][0]].Name)
		}
	}
}

func TestFolded(t *testing.T) {
	var b bytes.Buffer
	if err := export.Folded(&b, sample()); err != nil {
		t.Fatal(err)
	}
	want := "softirq;handle_softirqs;net_rx_action;tcp_v4_rcv;sock_def_readable;try_to_wake_up 60\n" +
		"task;do_syscall_64;tcp_sendmsg;tcp_sendmsg_locked;_copy_from_iter 30\nuser;a_<b>_&_c:d 10\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestGprof(t *testing.T) {
	var b bytes.Buffer
	if err := export.Gprof(&b, sample()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		` 60\.0 +0\.06 +0\.06 +60 +60000\.0 +60000\.0  try_to_wake_up \[sched\]`,
		` 30\.0 +0\.09 +0\.03 +30 .* _copy_from_iter \[copy\]`,
		`0\.00 +0\.06 +60/60 +tcp_v4_rcv`,
		`\[\d\] +60\.0 +0\.00 +0\.06 +60 +sock_def_readable`,
	} {
		if !regexp.MustCompile(want).MatchString(b.String()) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestFlame checks that names are escaped, that the page asks for nothing from a network, and that
// only what differs beyond chance has a colour.
func TestFlame(t *testing.T) {
	var b bytes.Buffer
	p := sample()
	if err := export.Flame(&b, p, "a <title>"); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if strings.Contains(page, "a <b>") || strings.Contains(page, "a <title>") ||
		!strings.Contains(page, "a &lt;b&gt; &amp; c;d") {
		t.Error("a name is not escaped")
	}
	if regexp.MustCompile(`https?://|src=|@import|url\(`).MatchString(page) {
		t.Error("the page asks a network for something")
	}
	if !strings.Contains(page, "60 samples, 60.00 %, own 60") {
		t.Errorf("no frame with 60 of 100 samples:\n%s", page)
	}
	b.Reset()
	if err := export.FlameDifference(&b, p, profile.Compare(p, p), "same"); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "background:rgb(") {
		t.Error("a profile differs from itself")
	}
}
