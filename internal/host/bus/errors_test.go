package bus

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestErrors(t *testing.T) {
	const device = "sys/devices/pci0000:00/0000:01:00.0"
	m := tree{
		device + "/aer_dev_correctable": "RxErr 2\nBadTLP 3\nBadDLLP 0\nRollover 0\nTimeout 0\nNonFatalErr 0\n" +
			"CorrIntErr 0\nHeaderOF 0\nTOTAL_ERR_COR 5\n",
		device + "/aer_dev_fatal":    "Undefined 0\nDLP 1\nTOTAL_ERR_FATAL 1\n",
		device + "/aer_dev_nonfatal": "Undefined 0\nDLP 4\nBad TLP 2\n\nbroken\n -\nTOTAL_ERR_NONFATAL 6\n",
	}
	got, ok := m.machine().Errors(device)
	want := Errors{Correctable: 5, NonFatal: 6, Fatal: 1,
		Kinds: map[string]uint64{"RxErr": 2, "BadTLP": 3, "DLP": 5, "Bad TLP": 2}}
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("%v (-want +got):\n%s", ok, diff)
	}
	if got, ok := m.machine().Errors("sys/devices/pci0000:00/0000:02:00.0"); ok {
		t.Errorf("a device without reports: %+v", got)
	}
}

// FuzzErrors: no count without a name, and nothing is counted twice.
func FuzzErrors(f *testing.F) {
	f.Add([]byte("RxErr 2\nBadTLP 3\nTOTAL_ERR_COR 5\n"))
	f.Add([]byte(" 5\n\t1\nx 18446744073709551615\nx 1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e Errors
		sum := parseErrors(b, &e)
		for kind, n := range e.Kinds {
			if kind == "" {
				t.Errorf("%d of nothing", n)
			}
			sum -= n
		}
		if sum != 0 {
			t.Errorf("the kinds do not add up: %d over", sum)
		}
	})
}
