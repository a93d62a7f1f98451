package live

import (
	"slices"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
)

// The words of a table give the same table, and a table is given the fewest words.
func TestIndirection(t *testing.T) {
	for _, c := range []struct {
		words string
		size  int
		table []uint32
		text  knob.Value
	}{
		{"equal 2", 5, []uint32{0, 1, 0, 1, 0}, "equal 2"},
		{"equal 2 start 3", 4, []uint32{3, 4, 3, 4}, "equal 2 start 3"},
		{"equal 1", 3, []uint32{0, 0, 0}, "equal 1"},
		{"weight 3 1", 8, []uint32{0, 0, 0, 0, 0, 0, 1, 1}, "0,0,0,0,0,0,1,1"},
		{"weight 0 1", 2, []uint32{1, 1}, "equal 1 start 1"},
		{"weight 1 1 1", 4, []uint32{0, 0, 1, 2}, "0,0,1,2"},
		{"0,1,1,0", 4, []uint32{0, 1, 1, 0}, "0,1,1,0"},
		{"0,1,2,3", 4, []uint32{0, 1, 2, 3}, "equal 4"},
	} {
		got, err := indirectionTable(c.words, c.size)
		if err != nil || !slices.Equal(got, c.table) {
			t.Errorf("%s: %v, %v; want %v", c.words, got, err, c.table)
			continue
		}
		if text := indirectionText(got); text != c.text {
			t.Errorf("%v is %q; want %q", got, text, c.text)
		}
	}
	if got, err := indirectionTable("default", 4); got != nil || err != nil {
		t.Errorf("default: %v, %v", got, err)
	}
	for _, bad := range []string{
		"", "equal", "equal 0", "equal 5", "equal x", "equal 2 start", "weight", "weight 0 0", "weight -1 2", "0,1,2",
		"0,1,2,x", "0,1,2,70000", "same 4",
	} {
		if got, err := indirectionTable(bad, 4); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

// Whatever table a NIC has, its text gives it back.
func FuzzIndirection(f *testing.F) {
	f.Add("equal 4", []byte{0, 1, 2, 3})
	f.Add("weight 3 1", []byte{7})
	f.Add("0,1,1", []byte{0, 0, 9})
	f.Fuzz(func(t *testing.T, words string, entries []byte) {
		if len(entries) > 0 {
			table := make([]uint32, len(entries))
			for i, e := range entries {
				table[i] = uint32(e)
			}
			text := indirectionText(table)
			if back, err := indirectionTable(string(text), len(table)); err != nil || !slices.Equal(back, table) {
				t.Fatalf("%v is %q, and that is %v, %v", table, text, back, err)
			}
		}
		table, err := indirectionTable(words, len(entries))
		if err == nil && table != nil && len(table) != len(entries) {
			t.Fatalf("%q for %d entries: %v", words, len(entries), table)
		}
	})
}
