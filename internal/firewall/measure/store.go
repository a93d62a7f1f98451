package measure

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/firewall/cost"
	"github.com/linerate/linerate/internal/kernel/procfs"
)

// storeName is the file in the state directory, and mostStored how many kernels and processors it
// keeps.
const (
	storeName  = "firewall-prices.json"
	mostStored = 16
)

// stored is the file: the calibrations of this state directory, the newest last.
type stored struct {
	Calibrations []Calibration `json:"calibrations"`
}

// Here returns the release of the running kernel and the name of the processor, for which prices
// hold.
func Here() (kernel, processor string) {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err == nil {
		kernel = strings.TrimSpace(string(b))
	}
	if b, err = os.ReadFile("/proc/cpuinfo"); err == nil {
		if all := procfs.ParseCPUInfo(b); len(all) > 0 {
			processor = all[0].Model
		}
	}
	return kernel, processor
}

// Stored returns the calibration of this kernel and processor from a state directory. The error is
// fs.ErrNotExist if there is none.
func Stored(fsys durable.FS, state string) (Calibration, error) {
	all, err := readStored(fsys, state)
	if err != nil {
		return Calibration{}, err
	}
	kernel, processor := Here()
	for _, c := range slices.Backward(all.Calibrations) {
		if c.Kernel == kernel && c.Processor == processor && kernel != "" {
			return c, nil
		}
	}
	return Calibration{}, fmt.Errorf("read prices of kernel %s: %w", kernel, fs.ErrNotExist)
}

func readStored(fsys durable.FS, state string) (stored, error) {
	var all stored
	b, err := fsys.ReadFile(filepath.Join(state, storeName))
	if err != nil {
		return all, fmt.Errorf("read prices: %w", err)
	}
	if err := json.Unmarshal(b, &all); err != nil {
		return stored{}, fmt.Errorf("read prices %s: %w", storeName, err)
	}
	for _, c := range all.Calibrations {
		for _, price := range c.Prices.All() {
			if *price < 0 {
				return stored{}, fmt.Errorf("read prices %s: a price is below zero", storeName)
			}
		}
	}
	return all, nil
}

// Store keeps a calibration in a state directory, in place of an earlier one of the same kernel and
// processor.
func Store(fsys durable.FS, state string, c Calibration) error {
	all, err := readStored(fsys, state)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		all = stored{} // a file that cannot be read is of no use to anyone
	}
	all.Calibrations = append(slices.DeleteFunc(all.Calibrations, func(old Calibration) bool {
		return old.Kernel == c.Kernel && old.Processor == c.Processor
	}), c)
	if n := len(all.Calibrations); n > mostStored {
		all.Calibrations = all.Calibrations[n-mostStored:]
	}
	b, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return fmt.Errorf("store prices: %w", err)
	}
	if err := durable.MkdirAll(fsys, state, 0o755); err != nil {
		return fmt.Errorf("store prices: %w", err)
	}
	if err := durable.Replace(fsys, filepath.Join(state, storeName), append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("store prices: %w", err)
	}
	return nil
}

// Prices returns the prices to use with a state directory: calibrated on this kernel and processor,
// or the built-in ones, with which c is nil.
func Prices(fsys durable.FS, state string) (p cost.Prices, c *Calibration) {
	if found, err := Stored(fsys, state); err == nil {
		return found.Prices, &found
	}
	return cost.Measured(), nil
}
