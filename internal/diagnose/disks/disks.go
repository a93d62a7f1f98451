package disks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/storage"
	"github.com/linerate/linerate/internal/storage/layers"
)

// Codes returns the codes that this package gives, in the order of its findings.
func Codes() []evidence.Code {
	return []evidence.Code{evidence.DiskCacheMeasured, evidence.DiskIOErrors, evidence.DiskLinkLow,
		evidence.DiskSaturated, evidence.DiskQueueDepth, evidence.DiskScheduler, evidence.DiskReadAhead,
		evidence.DiskWriteCache}
}

// Findings returns what the results of one subject show, the most important first.
func Findings(s storage.Subject, results []storage.Result) []evidence.Finding {
	c := judged{s, results}
	var all []evidence.Finding
	for _, rule := range []func(judged) (evidence.Finding, bool){
		cacheMeasured, ioErrors, linkLow, saturated, queueDepth, scheduler, readAhead, writeCache,
	} {
		f, ok := rule(c)
		if !ok {
			continue
		}
		f.Where = "near"
		if e, known := evidence.Explain(f.Code); known && f.Remedy.Text == "" {
			f.Remedy.Text, f.Remedy.Proof = e.Remedy, e.Proof
		}
		for _, setting := range f.Remedy.Settings {
			f.Remedy.Knobs = append(f.Remedy.Knobs, string(setting.Knob))
		}
		all = append(all, f)
	}
	return all
}

// judged is what the rules look at.
type judged struct {
	subject storage.Subject
	results []storage.Result
}

// queued returns the first layer with a request queue: the device whose settings decide.
func (c judged) queued() (layers.Layer, bool) {
	for _, l := range c.subject.Stack.Layers {
		if l.Queue != nil {
			return l, true
		}
	}
	return layers.Layer{}, false
}

// setting returns a candidate of a block knob.
func setting(device, attribute, why string, levels ...knob.Value) evidence.Candidate {
	return evidence.Candidate{Knob: knob.ID(knob.KindBlock + ":" + device + "/" + attribute), Side: "near",
		Levels: levels, Why: why}
}

func number(name string, x float64, unit, source string) evidence.Evidence {
	return evidence.Evidence{Name: name, Value: x, Unit: unit, Source: source}
}

func word(name, x, source string) evidence.Evidence {
	return evidence.Evidence{Name: name, Value: x, Source: source}
}

func cacheMeasured(c judged) (evidence.Finding, bool) {
	f := evidence.Finding{Code: evidence.DiskCacheMeasured, Severity: evidence.Warning, Confidence: 0.95}
	var tests []string
	for _, r := range c.results {
		if r.Whose == storage.Device {
			continue
		}
		if r.Whose == storage.Unknown {
			f.Confidence = min(f.Confidence, 0.5)
		}
		tests = append(tests, fmt.Sprintf("%s (%s)", r.Test, r.Whose))
		if r.DeviceRatio != nil {
			f.Evidence = append(f.Evidence, number(string(r.Test)+": bytes at the device over bytes at the file",
				*r.DeviceRatio, "ratio", "/proc/diskstats, /proc/self/io"))
		}
		if r.ResidentRatio != nil {
			f.Evidence = append(f.Evidence, number(string(r.Test)+": share of the file in memory", *r.ResidentRatio,
				"ratio", "cachestat"))
		}
	}
	f.Title = "These figures are not the disk's: " + strings.Join(tests, ", ") + "."
	return f, len(tests) > 0
}

func ioErrors(c judged) (evidence.Finding, bool) {
	f := evidence.Finding{Code: evidence.DiskIOErrors, Severity: evidence.Critical, Confidence: 0.9}
	failed := uint64(0)
	for _, r := range c.results {
		failed += r.Errors
	}
	if failed > 0 {
		f.Evidence = append(f.Evidence, number("failed operations", float64(failed), "operations", "the test"))
	}
	for _, l := range c.subject.Stack.Layers {
		if l.Errors > 0 {
			failed += l.Errors
			f.Evidence = append(f.Evidence, number("errors of "+l.Name, float64(l.Errors), "errors", l.Source))
		}
	}
	f.Title = fmt.Sprintf("%d errors of the disk or its file system.", failed)
	return f, failed > 0
}

func linkLow(c judged) (evidence.Finding, bool) {
	for _, l := range c.subject.Stack.Disks() {
		if l.Link == nil || l.Link.MaxBitsPerSecond == 0 || l.Link.BitsPerSecond >= 0.99*l.Link.MaxBitsPerSecond {
			continue
		}
		return evidence.Finding{Code: evidence.DiskLinkLow, Severity: evidence.Warning, Confidence: 0.7,
			Title: fmt.Sprintf("The %s link of %s runs at %s of %s.", l.Link.Kind, l.Name,
				unit.BitRate(l.Link.BitsPerSecond), unit.BitRate(l.Link.MaxBitsPerSecond)),
			Evidence: []evidence.Evidence{number("link", l.Link.BitsPerSecond, "bits_per_second", l.Link.Source),
				number("largest", l.Link.MaxBitsPerSecond, "bits_per_second", l.Link.Source)}}, true
	}
	return evidence.Finding{}, false
}

// busyOthers is the share of other programs at the device from which a figure is only a share.
const busyOthers = 0.1

func saturated(c judged) (evidence.Finding, bool) {
	i := slices.IndexFunc(c.results, func(r storage.Result) bool { return r.OthersRatio > busyOthers })
	if i < 0 {
		return evidence.Finding{}, false
	}
	r := c.results[i]
	return evidence.Finding{Code: evidence.DiskSaturated, Severity: evidence.Warning, Confidence: 0.8,
		Title: fmt.Sprintf("While %s ran, other programs moved %s of its bytes at the device.", r.Test,
			unit.FormatPercent(r.OthersRatio)),
		Evidence: []evidence.Evidence{number("bytes of others over bytes of the test", r.OthersRatio, "ratio",
			"/proc/diskstats, /proc/self/io")}}, true
}

func queueDepth(c judged) (evidence.Finding, bool) {
	for _, r := range c.results {
		if len(r.Ladder) < 2 || r.Knee < 2 || r.Ladder[0].OperationsPerSec <= 0 {
			continue
		}
		at := slices.IndexFunc(r.Ladder, func(x storage.Rung) bool { return x.Depth == r.Knee })
		if at < 0 || r.Ladder[at].OperationsPerSec < 2*r.Ladder[0].OperationsPerSec {
			continue
		}
		knee := r.Ladder[at]
		f := evidence.Finding{Code: evidence.DiskQueueDepth, Severity: evidence.Notice, Confidence: 0.9,
			Title: fmt.Sprintf("%s does %s operations/s with %d in flight, and %s with one.", r.Test,
				unit.FormatCount(knee.OperationsPerSec), knee.Depth, unit.FormatCount(r.Ladder[0].OperationsPerSec)),
			Evidence: []evidence.Evidence{
				number("knee", float64(knee.Depth), "operations in flight", "the ladder"),
				number("operations at the knee", knee.OperationsPerSec, "operations_per_second", "the ladder"),
				number("operations with one in flight", r.Ladder[0].OperationsPerSec, "operations_per_second", "the ladder"),
				number("median latency at the knee", knee.P50, "seconds", "the ladder")}}
		if l, ok := c.queued(); ok && l.Queue.Requests > 0 && l.Queue.Requests < int64(knee.Depth) {
			f.Evidence = append(f.Evidence, number("requests that the queue holds", float64(l.Queue.Requests), "requests",
				l.Source+"/queue/nr_requests"))
			f.Remedy.Settings = append(f.Remedy.Settings, setting(l.Name, "nr_requests",
				"the queue holds fewer requests than the knee", knob.Value(strconv.Itoa(knee.Depth)),
				knob.Value(strconv.Itoa(2*knee.Depth))))
		}
		return f, true
	}
	return evidence.Finding{}, false
}

// fastOperations is the rate from which the work of a scheduler per request matters: 20 000 times
// its few microseconds is a tenth of a CPU.
const fastOperations = 20_000

func scheduler(c judged) (evidence.Finding, bool) {
	l, ok := c.queued()
	if !ok || l.Queue.Scheduler == "" {
		return evidence.Finding{}, false
	}
	most := 0.0
	for _, r := range c.results {
		if r.Whose == storage.Device {
			most = max(most, r.OperationsPerSec)
		}
	}
	var disk layers.Layer
	if all := c.subject.Stack.Disks(); len(all) > 0 {
		disk = all[0]
	}
	// Virtio calls every disk rotational, so the word counts only for real ones.
	rotational := disk.Medium == layers.HDD
	var title string
	var levels []knob.Value
	switch {
	case l.Queue.Scheduler == "bfq" && !rotational && most > fastOperations:
		title = fmt.Sprintf("%s does %s operations/s under bfq, which costs CPU time for each.", l.Name,
			unit.FormatCount(most))
		levels = []knob.Value{"none", "mq-deadline"}
	case l.Queue.Scheduler == "none" && rotational && l.Queue.DeviceQueueLength <= 1:
		title = fmt.Sprintf("%s is rotational and sorts no requests: it has no scheduler and no queue of its own.", l.Name)
		levels = []knob.Value{"mq-deadline", "bfq"}
	default:
		return evidence.Finding{}, false
	}
	levels = slices.DeleteFunc(levels, func(v knob.Value) bool {
		return !slices.Contains(l.Queue.Schedulers, string(v))
	})
	f := evidence.Finding{Code: evidence.DiskScheduler, Severity: evidence.Notice, Confidence: 0.6, Title: title,
		Evidence: []evidence.Evidence{word("scheduler", l.Queue.Scheduler, l.Source+"/queue/scheduler"),
			number("operations", most, "operations_per_second", "the test")}}
	if len(levels) > 0 {
		f.Remedy.Settings = []evidence.Candidate{setting(l.Name, "scheduler", title, levels...)}
	}
	return f, true
}

// wellAhead is the share of the direct throughput that buffered sequential reads reach with a
// suitable read-ahead.
const wellAhead = 0.7

func readAhead(c judged) (evidence.Finding, bool) {
	l, ok := c.queued()
	if !ok {
		return evidence.Finding{}, false
	}
	source := l.Source + "/queue/read_ahead_kb"
	var direct, buffered float64
	for _, r := range c.results {
		if r.Whose == storage.ReadAhead && r.Test == storage.RandomRead && r.DeviceRatio != nil {
			return evidence.Finding{Code: evidence.DiskReadAhead, Severity: evidence.Warning, Confidence: 0.9,
				Title: fmt.Sprintf("Random reads moved %.1f times their bytes at %s: the kernel reads up to %s ahead.",
					*r.DeviceRatio, l.Name, unit.Bytes(l.Queue.ReadAheadBytes)),
				Evidence: []evidence.Evidence{number("bytes at the device over bytes at the file", *r.DeviceRatio, "ratio",
					"/proc/self/io"), number("read-ahead", float64(l.Queue.ReadAheadBytes), "bytes", source)},
				Remedy: evidence.Remedy{Settings: []evidence.Candidate{setting(l.Name, "read_ahead_kb",
					"random reads need none", "16", "128")}}}, true
		}
		if r.Test == storage.SequentialRead && r.Whose == storage.Device {
			if r.Way == storage.Direct {
				direct = max(direct, r.ThroughputBytesPerSec)
			} else {
				buffered = max(buffered, r.ThroughputBytesPerSec)
			}
		}
	}
	if direct == 0 || buffered == 0 || buffered >= wellAhead*direct {
		return evidence.Finding{}, false
	}
	kib := max(l.Queue.ReadAheadBytes/1024, 32)
	return evidence.Finding{Code: evidence.DiskReadAhead, Severity: evidence.Notice, Confidence: 0.7,
		Title: fmt.Sprintf("Buffered sequential reads reach %s/s of the %s/s of direct ones.", unit.Bytes(buffered),
			unit.Bytes(direct)),
		Evidence: []evidence.Evidence{number("buffered", buffered, "bytes_per_second", "the test"),
			number("direct", direct, "bytes_per_second", "the test"),
			number("read-ahead", float64(l.Queue.ReadAheadBytes), "bytes", source)},
		Remedy: evidence.Remedy{Settings: []evidence.Candidate{setting(l.Name, "read_ahead_kb",
			"the reader waits for one small read after another", knob.Value(strconv.FormatInt(4*kib, 10)),
			knob.Value(strconv.FormatInt(16*kib, 10)))}}}, true
}

func writeCache(c judged) (evidence.Finding, bool) {
	i := slices.IndexFunc(c.results, func(r storage.Result) bool {
		return r.Test.Writes() && r.Sync == storage.NoSync && r.Whose == storage.Device
	})
	if i < 0 {
		return evidence.Finding{}, false
	}
	for _, l := range c.subject.Stack.Disks() {
		if l.Queue != nil && l.Queue.WriteCache == "write back" {
			return evidence.Finding{Code: evidence.DiskWriteCache, Severity: evidence.Info, Confidence: 0.8,
				Title: fmt.Sprintf("%s has a volatile write cache, and %s did not flush it.", l.Name, c.results[i].Test),
				Evidence: []evidence.Evidence{word("write cache", l.Queue.WriteCache,
					l.Source+"/queue/write_cache")}}, true
		}
	}
	return evidence.Finding{}, false
}
