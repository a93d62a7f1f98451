package page

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
)

var handler = sync.OnceValue(Handler)

func ask(t *testing.T, method, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	handler().ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestHandler requests the document and one of its files in all the ways that clients do.
func TestHandler(t *testing.T) {
	plain := ask(t, "GET", "/")
	text := body(t, plain)
	script := regexp.MustCompile(`assets/[0-9a-f]{16}/js/main\.js`).FindString(text)
	if plain.StatusCode != 200 || script == "" || strings.Contains(text, "{assets}") ||
		strings.Contains(text, "{preload}") {
		t.Fatalf("the document: status %d, its script %q", plain.StatusCode, script)
	}
	// Hidden until the script finds the mark of a session.
	if !strings.Contains(text, `<form method="post" action="/logout" id="logout" hidden>`) {
		t.Error("the document has no log-out")
	}
	if got := plain.Header.Get("Cache-Control"); got != "no-cache" {
		t.Errorf("the document is kept by %q, and would hide a new version", got)
	}
	tag := plain.Header.Get("ETag")
	packed := ask(t, "GET", "/", "Accept-Encoding", "br, gzip;q=0.5")
	unpacked, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(unpacked); err != nil || string(b) != text {
		t.Errorf("packed is another document than plain: %v", err)
	}
	if packed.Header.Get("ETag") == tag {
		t.Error("packed and plain have one tag, and a cache would mix them")
	}
	for _, c := range []struct {
		method, path string
		header       []string
		status       int
	}{
		{"HEAD", "/", nil, 200},
		{"GET", "/", []string{"If-None-Match", tag}, 304},
		{"GET", "/", []string{"If-None-Match", `"other", W/` + tag}, 304},
		{"GET", "/", []string{"If-None-Match", `"other"`}, 200},
		{"GET", "/", []string{"If-None-Match", tag, "Accept-Encoding", "gzip"}, 200},
		{"POST", "/", nil, 405},
		{"GET", "/index.html", nil, 404},
		{"GET", "/" + script, []string{"Accept-Encoding", "gzip;q=0"}, 200},
		{"GET", "/" + script + "/", nil, 404},
		{"GET", "/assets/../page.go", nil, 404},
		{"GET", "/files/js/main.js", nil, 404},
	} {
		r := ask(t, c.method, c.path, c.header...)
		b := body(t, r)
		if r.StatusCode != c.status {
			t.Errorf("%s %s %q: status %d, want %d", c.method, c.path, c.header, r.StatusCode, c.status)
		}
		if (c.method == "HEAD" || c.status == 304) && b != "" {
			t.Errorf("%s %s: has a body", c.method, c.path)
		}
		policy := r.Header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'self'", "frame-ancestors 'none'",
			"require-trusted-types-for 'script'"} {
			if !strings.Contains(policy, part) || strings.Contains(policy, "unsafe") {
				t.Errorf("%s %s: policy %q, want %q in it", c.method, c.path, policy, part)
			}
		}
	}
	if r := ask(t, "GET", "/"+script); r.Header.Get("Content-Encoding") != "" ||
		!strings.Contains(r.Header.Get("Cache-Control"), "immutable") ||
		r.Header.Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Errorf("the script: %v", r.Header)
	}
}

// TestFiles checks what a policy cannot: no address of another host, no markup made of strings,
// every module in the preload list, and files of readable length.
func TestFiles(t *testing.T) {
	first := body(t, ask(t, "GET", "/"))
	if regexp.MustCompile(`(?i)\son\w+=|\sstyle=|<script>|<style`).MatchString(first) {
		t.Error("the document has a script, a style or a handler in itself")
	}
	var plain, packed int
	for path, f := range files() {
		plain += len(f.plain.body)
		packed += len(f.packed.body)
		if f.packed.body == nil {
			packed += len(f.plain.body)
		}
		if strings.HasSuffix(path, ".js") && strings.Contains(path, "/js/") &&
			!strings.Contains(first, strings.TrimPrefix(path, "/")) {
			t.Errorf("%s is not loaded ahead", path)
		}
	}
	t.Logf("%d bytes in all, %d packed", plain, packed)
	if packed > 120_000 {
		t.Errorf("the page is %d bytes packed: over what a phone loads at once", packed)
	}
	forbidden := regexp.MustCompile(
		`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\("style|https?://`)
	err := fs.WalkDir(embedded, "files", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(name, "/vendor/") {
			return err
		}
		b, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		if n := bytes.Count(b, []byte("\n")); n > 600 {
			t.Errorf("%s has %d lines, over 600: split it by idea", name, n)
		}
		for _, found := range forbidden.FindAllString(strings.ReplaceAll(string(b), "http://www.w3.org/2000/svg", ""),
			-1) {
			t.Errorf("%s has %s", name, found)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestVendored checks that uPlot is the version in its note.
func TestVendored(t *testing.T) {
	note, err := embedded.ReadFile("files/vendor/uplot/VERSION")
	if err != nil {
		t.Fatal(err)
	}
	sums := regexp.MustCompile(`sha256 ([0-9a-f]{64})  (\S+)`).FindAllStringSubmatch(string(note), -1)
	if len(sums) != 2 {
		t.Fatalf("the note has %d sums, want 2", len(sums))
	}
	for _, s := range sums {
		b, err := embedded.ReadFile("files/vendor/uplot/" + s[2])
		if err != nil {
			t.Error(err)
		} else if got := fmt.Sprintf("%x", sha256Sum(b)); got != s[1] {
			t.Errorf("%s has the sum %s, not the noted %s", s[2], got, s[1])
		}
	}
}
