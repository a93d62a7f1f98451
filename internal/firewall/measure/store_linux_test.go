package measure

import (
	"testing"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/firewall/cost"
)

func TestStore(t *testing.T) {
	kernel, processor := Here()
	if kernel == "" || processor == "" {
		t.Fatalf("kernel %q on %q", kernel, processor)
	}
	fsys := durable.NewMem()
	if p, c := Prices(fsys, "/state"); c != nil || p != cost.Measured() {
		t.Error("prices out of an empty directory")
	}
	mine := Calibration{Kernel: kernel, Processor: processor, Prices: cost.Prices{Rule: 3}, Cases: 7}
	for _, c := range []Calibration{{Kernel: kernel, Processor: processor, Cases: 1}, mine,
		{Kernel: "6.1.0", Processor: processor, Cases: 2}, {Kernel: kernel, Processor: "another", Cases: 3}} {
		if err := Store(fsys, "/state", c); err != nil {
			t.Fatal(err)
		}
	}
	if p, c := Prices(fsys, "/state"); c == nil || c.Cases != 7 || p.Rule != 3 {
		t.Errorf("%v, %+v", p, c)
	}
	if all, err := readStored(fsys, "/state"); err != nil || len(all.Calibrations) != 3 {
		t.Errorf("%d calibrations, %v", len(all.Calibrations), err)
	}
	// Half a file, and prices below zero, are not used; the next calibration replaces the file.
	for _, text := range []string{`{"calibrations":[{"ker`,
		`{"calibrations":[{"kernel":"` + kernel + `","processor":"` + processor + `","prices":{"rule":-1}}]}`} {
		if err := durable.Replace(fsys, "/state/"+storeName, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, c := Prices(fsys, "/state"); c != nil {
			t.Errorf("%s: %+v", text, c)
		}
		if err := Store(fsys, "/state", mine); err != nil {
			t.Fatal(err)
		}
		if _, c := Prices(fsys, "/state"); c == nil {
			t.Errorf("not stored over %s", text)
		}
	}
	// Many kernels in turn do not make the file grow.
	for i := range 3 * mostStored {
		if err := Store(fsys, "/state", Calibration{Kernel: string(rune('a' + i))}); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := readStored(fsys, "/state"); err != nil || len(all.Calibrations) != mostStored {
		t.Errorf("%d calibrations, %v", len(all.Calibrations), err)
	}
}
