package release

import (
	"os"
	"regexp"
	"testing"
)

// TestNumberIsTheNewestRelease compares the version with the changelog.
func TestNumberIsTheNewestRelease(t *testing.T) {
	b, err := os.ReadFile("../../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+)`).FindSubmatch(b)
	if m == nil || string(m[1]) != Number {
		t.Errorf("the newest release in CHANGELOG.md is %q, Number is %q", m, Number)
	}
}

func TestVersion(t *testing.T) {
	defer func(old string) { revision = old }(revision)
	for _, c := range []struct{ revision, want string }{{"", Number}, {"8bdaa3e", Number + "+8bdaa3e"}} {
		if revision = c.revision; Version() != c.want {
			t.Errorf("revision %q: %q, want %q", c.revision, Version(), c.want)
		}
	}
}
