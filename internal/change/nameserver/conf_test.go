package nameserver

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
)

// write makes files below a new directory and returns it. DIR in a text is the directory.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The options block of Debian's package is in a file of its own.
var bindFiles = map[string]string{
	"main": "// This is the primary configuration file\ninclude \"DIR/options\";\ninclude \"DIR/local\";\n",
	"options": "options {\n\tdirectory \"/var/cache/bind\"; /* max-cache-size 1M; */\n" +
		"\t# max-cache-size 2M;\n\tmax-cache-size 100K; // tuned in 2007\n\tprefetch 2 9;\n" +
		"\tlisten-on-v6 { any; };\n\tforwarders { 192.0.2.1; };\n};\n",
	"local": "zone \"a\" { type primary; file \"max-cache-size\"; max-cache-ttl 7; };\nview v { max-cache-size 9M; };\n",
}

var unboundFiles = map[string]string{
	"main": "# main\ninclude-toplevel: \"DIR/*.conf\"\nremote-control:\n  control-enable: yes\n",
	"a.conf": "server:\n    num-threads: 1 # one\n    # so-rcvbuf: 4m\n    msg-cache-size: \"100k\"\n" +
		"forward-zone:\n    name: \".\"\n    num-threads: 9\n",
	"b.conf": "server:\n\tnum-threads: 2\n",
}

var kresdFiles = map[string]string{
	"main": "net.listen('127.0.0.1', 53, { kind = 'dns' })\n-- cache.size = 5 * MB\ncache.size = 100 * kB -- small\n" +
		"cache.max_ttl( 5 )\nlog_level('debug')",
}

// kresdTimes sets times to live, which a cache.size behind them would undo.
var kresdTimes = map[string]string{
	"main": "modules = { 'stats' }\ncache.min_ttl(0) -- fresh\ncache.max_ttl(1)\n",
}

// TestCacheSizeKeepsTimes changes the size of the cache, and asks kresd for the times to live.
func TestCacheSizeKeepsTimes(t *testing.T) {
	testenv.Need(t, testenv.Peers)
	dir := write(t, map[string]string{"main": kresdTimes["main"] + "print('TIMES', cache.min_ttl(), cache.max_ttl(), " +
		"cache.current_size)\nquit()\n"})
	main := filepath.Join(dir, "main")
	l, err := scan(Kresd, main, "cache.size")
	if err != nil {
		t.Fatal(err)
	}
	_, text, err := l.edit(Kresd, "cache.size", "3 * MB")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(main, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("kresd", "-n", "-c", main, dir).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		testenv.Missing(t, testenv.Peers, err)
	}
	if err != nil || !strings.Contains(string(out), "TIMES\t0\t1\t3145728") {
		t.Errorf("with %q kresd says %s, %v", text, out, err)
	}
}

func TestValues(t *testing.T) {
	for _, c := range []struct {
		kind         Kind
		files        map[string]string
		option, want string
	}{
		{Named, bindFiles, "max-cache-size", "100K"},
		{Named, bindFiles, "prefetch", "2 9"},
		{Named, bindFiles, "max-cache-ttl", Unset}, // that of a zone is another one
		{Named, bindFiles, "directory", `"/var/cache/bind"`},
		{Unbound, unboundFiles, "num-threads", "2"}, // the last one counts
		{Unbound, unboundFiles, "so-rcvbuf", Unset},
		{Unbound, unboundFiles, "msg-cache-size", `"100k"`},
		{Unbound, unboundFiles, "control-enable", Unset}, // of another clause
		{Kresd, kresdFiles, "cache.size", "100 * kB"},
		{Kresd, kresdFiles, "cache.max_ttl", "5"},
		{Kresd, kresdFiles, "log_level", "'debug'"},
		{Kresd, kresdFiles, "cache.min_ttl", Unset},
	} {
		l, err := scan(c.kind, filepath.Join(write(t, c.files), "main"), c.option)
		if err != nil || l.value() != c.want {
			t.Errorf("%s %s is %q, %v; want %q", c.kind, c.option, l.value(), err, c.want)
		}
	}
}

// Every option goes to another value and back, and the bytes of all files are the old ones.
func TestBytesComeBack(t *testing.T) {
	for _, c := range []struct {
		kind   Kind
		files  map[string]string
		option string
		to     string
	}{
		{Named, bindFiles, "max-cache-size", "256M"}, {Named, bindFiles, "prefetch", "0"},
		{Named, bindFiles, "udp-receive-buffer", "1048576"},
		{Unbound, unboundFiles, "num-threads", "4"}, {Unbound, unboundFiles, "so-rcvbuf", "1m"},
		{Unbound, unboundFiles, "msg-cache-size", "64m"},
		{Kresd, kresdFiles, "cache.size", "100 * MB"}, {Kresd, kresdFiles, "cache.max_ttl", "86400"},
		{Kresd, kresdFiles, "log_level", "'notice'"}, {Kresd, kresdFiles, "cache.min_ttl", "5"},
		{Kresd, kresdTimes, "cache.size", "100 * MB"}, {Kresd, kresdTimes, "cache.max_ttl", "86400"},
	} {
		dir := write(t, c.files)
		main := filepath.Join(dir, "main")
		set := func(value string) string {
			t.Helper()
			l, err := scan(c.kind, main, c.option)
			if err != nil {
				t.Fatal(err)
			}
			file, text, err := l.edit(c.kind, c.option, value)
			if err != nil {
				t.Fatalf("%s %s=%s: %v", c.kind, c.option, value, err)
			}
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			return l.value()
		}
		from := set(c.to)
		if now := set(from); now != c.to {
			t.Errorf("%s %s holds %q after %q was written", c.kind, c.option, now, c.to)
		}
		for name, text := range c.files {
			if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil ||
				string(b) != strings.ReplaceAll(text, "DIR", dir) {
				t.Errorf("%s %s: %s is now %q, %v", c.kind, c.option, name, b, err)
			}
		}
	}
}

func TestRefusedEdits(t *testing.T) {
	for _, c := range []struct {
		kind          Kind
		text          string
		option, value string
		want          error
	}{
		{Named, "options { prefetch 2  9; };\n", "prefetch", "0", fs.ErrInvalid},             // blanks would be lost
		{Named, "options { max-cache-size 1M; };\n", "max-cache-size", Unset, fs.ErrInvalid}, // not our line
		{Named, "options { prefetch 2 /* x */ 9; };\n", "prefetch", "0", fs.ErrInvalid},
		{Kresd, "log_level(level or 'info')\n", "log_level", "'notice'", fs.ErrInvalid},
		{Named, "zone \".\" { type hint; };\n", "max-cache-size", "1M", fs.ErrNotExist},
		{Unbound, "remote-control:\n", "num-threads", "2", fs.ErrNotExist},
		{Kresd, "if x then\n\tcache.max_ttl(1)\nend\n", "cache.size", "1 * MB", fs.ErrInvalid}, // would undo it
	} {
		main := filepath.Join(write(t, map[string]string{"main": c.text}), "main")
		l, err := scan(c.kind, main, c.option)
		if err == nil {
			_, _, err = l.edit(c.kind, c.option, c.value)
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%q: %v, want %v", c.text, err, c.want)
		}
	}
	if _, err := scan(Named, filepath.Join(write(t, map[string]string{"main": "include \"DIR/main\";\n"}), "main"),
		"prefetch"); err == nil {
		t.Error("a file that includes itself is read")
	}
}

// TestIncludes reads what several files say, in the forms that the programs accept.
func TestIncludes(t *testing.T) {
	for name, c := range map[string]struct {
		kind   Kind
		files  map[string]string
		option string
		want   string // of an error, if it begins with "!"
	}{
		"a pattern of named": {Named, map[string]string{"main": "include \"DIR/*.conf\";\r\n",
			"a.conf": "options {\r\n\t/* max-cache-size 1M; // */ prefetch 3; # max-cache-size 2M;\r\n" +
				"\tmax-cache-size 4M;\r\n};\r\n", "b.conf": "zone \"x\" { type hint; };"}, "max-cache-size", "4M"},
		"a file twice": {Unbound, map[string]string{"main": "server:\ninclude: \"DIR/*.conf\"\ninclude: 'DIR/a.conf'\n",
			"a.conf": "num-threads: 3\n"}, "num-threads", "3"},
		"a pattern of nothing": {Unbound, map[string]string{
			"main": "include: DIR/*.none\nserver:\n\tnum-threads:\t2\t# x\r\n"}, "num-threads", "2"},
		"a missing file": {Unbound, map[string]string{"main": "include: DIR/none.conf\nserver:\n"}, "num-threads",
			"!no such file"},
		"a missing file of named": {Named, map[string]string{"main": "include \"DIR/none\";\noptions {};\n"}, "prefetch",
			"!no such file"},
		"a loop of two": {Named, map[string]string{"main": "include \"DIR/a\";\n", "a": "include \"DIR/main\";\n"},
			"prefetch", "!main: it includes itself"},
		"a loop by a pattern": {Unbound, map[string]string{"main": "include: \"DIR/*\"\n"}, "num-threads",
			"!main: it includes itself"},
		"more and more": {Named, map[string]string{"main": strings.Repeat("include \"DIR/a\";", 300),
			"a": strings.Repeat("include \"DIR/b\";", 300), "b": "acl x { any; };"}, "prefetch", "!more than 200 files"},
		"an option of a view": {Named, map[string]string{"main": "view v { max-cache-size 9M; include \"DIR/none\"; };\n" +
			"options { };\n"}, "max-cache-size", Unset},
		"a comment without an end": {Named, map[string]string{"main": "options { prefetch 3; }; /* prefetch 4;"}, "prefetch",
			"3"},
	} {
		dir := write(t, c.files)
		l, err := scan(c.kind, filepath.Join(dir, "main"), c.option)
		if want, wrong := strings.CutPrefix(c.want, "!"); wrong {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := l.value(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWithLine(t *testing.T) {
	for _, c := range []struct {
		kind                Kind
		before              string
		option, value, want string
	}{
		{Named, "max-cache-size 100K;", "max-cache-size", "256M", "max-cache-size 256M;"},
		{Named, "max-cache-ttl 9;", "max-cache-size", "256M", "max-cache-ttl 9;|max-cache-size 256M;"},
		{Unbound, "num-threads: 1", "num-threads", "2", "num-threads: 2"},
		{Kresd, "cache.size = 100 * kB", "cache.size", "1 * MB", "cache.size = 1 * MB"},
		{Kresd, "cache.max_ttl(1)", "cache.max_ttl", "60", "cache.max_ttl(60)"},
	} {
		if got := strings.Join(WithLine(c.kind, []string{c.before}, c.option, c.value), "|"); got != c.want {
			t.Errorf("%s with %s %s is %q, want %q", c.before, c.option, c.value, got, c.want)
		}
	}
}

// Whatever a file holds, an edit that is accepted comes back to the same bytes.
func FuzzBytesComeBack(f *testing.F) {
	f.Add("options { max-cache-size 100K; };\n", uint8(0))
	f.Add("server:\n\tmax-cache-size: 1 # x\n", uint8(1))
	f.Add("max-cache-size(5)\n", uint8(2))
	f.Fuzz(func(t *testing.T, text string, which uint8) {
		if strings.Contains(text, "include") {
			return // of other files of this machine
		}
		kind := []Kind{Named, Unbound, Kresd}[which%3]
		main := filepath.Join(t.TempDir(), "main")
		if err := os.WriteFile(main, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		const option = "max-cache-size"
		l, err := scan(kind, main, option)
		if err != nil {
			return
		}
		from := l.value()
		_, there, err := l.edit(kind, option, "7777")
		if err != nil {
			return
		}
		if err := os.WriteFile(main, there, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err = scan(kind, main, option)
		if err != nil || l.value() != "7777" {
			t.Fatalf("%q became %q, which reads %q, %v", text, there, l.value(), err)
		}
		if _, back, err := l.edit(kind, option, from); err != nil || string(back) != text {
			t.Fatalf("%q became %q and then %q, %v", text, there, back, err)
		}
	})
}
