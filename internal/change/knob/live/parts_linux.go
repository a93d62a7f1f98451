package live

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/change/knob"
)

// hostKnobs are files of sysfs that belong to a part of the machine: a CPU, a PCI device, a disk.
// They are the whole host's, and every network namespace shows the same.
type hostKnobs struct {
	root   string            // the directory of all
	prefix string            // prefix of the subject in the name of its directory: cpu of cpu3
	files  map[string]string // by attribute
	parts  func(name string) bool
	comes  func(attribute string) bool // a setting that is there at times; nil: none
}

func cpuKnobs(root string) hostKnobs {
	return hostKnobs{root: root, prefix: "cpu", parts: decimal, files: map[string]string{
		"resume_latency": "power/pm_qos_resume_latency_us", "scaling_governor": "cpufreq/scaling_governor",
		"energy_performance_preference": "cpufreq/energy_performance_preference",
	}}
}

// pciKnobs are the power states of the link of a PCIe device (5.5:
// Documentation/ABI/testing/sysfs-bus-pci).
func pciKnobs(root string) hostKnobs {
	files := make(map[string]string)
	for _, f := range []string{"l0s_aspm", "l1_aspm", "l1_1_aspm", "l1_2_aspm", "l1_1_pcipm", "l1_2_pcipm", "clkpm"} {
		files[f] = "link/" + f
	}
	return hostKnobs{root: root, files: files, parts: func(name string) bool { return strings.Contains(name, ":") }}
}

func blockKnobs(root string) hostKnobs {
	files := make(map[string]string)
	for _, f := range []string{"read_ahead_kb", "scheduler", "nr_requests", "rq_affinity", "wbt_lat_usec"} {
		files[f] = knob.DiskFile(f)
	}
	comes := func(attribute string) bool {
		name, own := strings.CutPrefix(attribute, knob.OwnParameter)
		return own && name != "" && name[0] != '.' && !strings.Contains(name, "/")
	}
	return hostKnobs{root: root, files: files, parts: func(string) bool { return true }, comes: comes}
}

func decimal(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// file returns the path, and distinguishes a missing part from one that lacks the setting.
func (k hostKnobs) file(subject, attribute string) (string, error) {
	f, known := k.files[attribute]
	if k.comes != nil && k.comes(attribute) {
		f, known = knob.DiskFile(attribute), true
	}
	if subject == "" || strings.Contains(subject, "/") || subject == "." || subject == ".." || !k.parts(subject) {
		return "", fmt.Errorf("%w: no part of this machine is called %s", fs.ErrNotExist, subject)
	}
	dir := filepath.Join(k.root, k.prefix+subject)
	if _, err := os.Stat(dir); err != nil {
		return "", err
	}
	if !known {
		return "", fmt.Errorf("%w: attribute %s", knob.ErrNotSupported, attribute)
	}
	return filepath.Join(dir, f), nil
}

func (k hostKnobs) read(subject, attribute string) (knob.Value, error) {
	path, err := k.file(subject, attribute)
	if err != nil {
		return "", err
	}
	v, err := readPseudo(unix.AT_FDCWD, path)
	if chosen := bracketed(string(v)); chosen != "" {
		v = knob.Value(chosen) // of the list of I/O schedulers; "none" alone has no brackets
	}
	return v, absentSetting(attribute, err)
}

func (k hostKnobs) write(subject, attribute string, v knob.Value) error {
	path, err := k.file(subject, attribute)
	if err != nil {
		return err
	}
	return absentSetting(attribute, writePseudo(unix.AT_FDCWD, path, v))
}

func (k hostKnobs) check(subject, attribute string, _ knob.Value) error {
	path, err := k.file(subject, attribute)
	if err != nil {
		return err
	}
	return absentSetting(attribute, checkPseudo(unix.AT_FDCWD, path))
}

// absentSetting: the part exists, so a missing file means a kernel or a part without the setting
// (no cpufreq in a guest, no ASPM on a bus without it).
func absentSetting(attribute string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: this kernel or this part of the machine has no %s", knob.ErrNotSupported, attribute)
	}
	return err
}

// subjects lists the parts in order of their names.
func (k hostKnobs) subjects() ([]string, error) {
	entries, err := os.ReadDir(k.root)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if name, ok := strings.CutPrefix(e.Name(), k.prefix); ok && k.parts(name) {
			out = append(out, name)
		}
	}
	// Numbers by size: 2 before 10.
	sorting.StableFunc(out, func(a, b string) int { return len(a) - len(b) })
	return out, nil
}

// processorKnobs adds to the knobs of single CPUs the one that all CPUs share and that no file
// keeps.
type processorKnobs struct {
	hostKnobs
	latency string // /dev/cpu_dma_latency
}

// dmaLatency is the attribute of the subject "all".
const dmaLatency = "dma_latency"

// errHeld is why the shared latency cannot be set: the kernel takes a limit back when the file that
// it was written to is closed, so that some process would have to hold the file for as long as the
// change is to last, across the end of this program, of its guard and of the machine's next start.
var errHeld = fmt.Errorf(
	"%w: the kernel keeps it only while a process holds the file open; cpu:N/resume_latency sets the same for "+
		"one processor, and stays", knob.ErrReadOnly)

func (k processorKnobs) read(subject, attribute string) (knob.Value, error) {
	if subject != "all" || attribute != dmaLatency {
		return k.hostKnobs.read(subject, attribute)
	}
	// Opening requests nothing: a new holder starts with the default, which sets no limit.
	v, err := readPseudo(unix.AT_FDCWD, k.latency)
	if err != nil {
		return "", absentSetting(attribute, err)
	}
	// A binary s32, in microseconds; programs may write it as text, but it reads as binary.
	if len(v) != 4 {
		return "", fmt.Errorf("%d bytes in place of 4", len(v))
	}
	return knob.Value(fmt.Sprint(int32(binary.NativeEndian.Uint32([]byte(v))))), nil
}

func (k processorKnobs) write(subject, attribute string, v knob.Value) error {
	if subject == "all" && attribute == dmaLatency {
		return errHeld
	}
	return k.hostKnobs.write(subject, attribute, v)
}

func (k processorKnobs) check(subject, attribute string, v knob.Value) error {
	if subject == "all" && attribute == dmaLatency {
		return errHeld
	}
	return k.hostKnobs.check(subject, attribute, v)
}
