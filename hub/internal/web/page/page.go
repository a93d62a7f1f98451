package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
)

//go:embed files
var embedded embed.FS

// document is the file at the address of the page. assets is the placeholder for the place of all
// other files, preload the one for the list of modules: without the list, a browser would request
// each module only after it has read the one that imports it, one round trip after the other.
const (
	document = "index.html"
	assets   = "{assets}"
	preload  = "{preload}"
)

// headers of every answer. Trusted types are required without a policy that makes them: no script
// can turn a string into HTML.
var headers = [][2]string{
	{"Content-Security-Policy",
		"default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; " +
			"require-trusted-types-for 'script'; trusted-types 'none'"},
	{"X-Content-Type-Options", "nosniff"},
	{"Referrer-Policy", "same-origin"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Vary", "Accept-Encoding"},
}

// variant is a file in one encoding.
type variant struct {
	body []byte
	tag  string // ETag, with the quotes
}

// file is served under one path.
type file struct {
	kind          string // media type
	cache         string // Cache-Control
	plain, packed variant
}

// Handler serves the page at "/" and its files below. It reads and compresses all of them once,
// here, and none for a request. It answers only GET and HEAD, and only the paths of its files.
func Handler() http.Handler {
	served := files()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, h := range headers {
			w.Header().Set(h[0], h[1])
		}
		f, ok := served[r.URL.Path]
		switch {
		case !ok:
			http.Error(w, "no such file", http.StatusNotFound)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		default:
			f.serve(w, r)
		}
	})
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	v := f.plain
	if f.packed.body != nil && takesGzip(r.Header.Get("Accept-Encoding")) {
		v = f.packed
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", f.cache)
	h.Set("ETag", v.tag)
	if has(r.Header.Get("If-None-Match"), v.tag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(v.body)))
	if r.Method == http.MethodGet {
		w.Write(v.body)
	}
}

// has reports whether a list of tags, as in If-None-Match, contains one.
func has(list, tag string) bool {
	for one := range strings.SplitSeq(list, ",") {
		one = strings.TrimSpace(one)
		if one == "*" || strings.TrimPrefix(one, "W/") == tag {
			return true
		}
	}
	return false
}

// takesGzip reports whether a client with this Accept-Encoding accepts gzip.
func takesGzip(accepted string) bool {
	for one := range strings.SplitSeq(accepted, ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(one), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.ReplaceAll(weight, " ", ""), "q="), 64)
			return err != nil || q > 0
		}
	}
	return false
}

// files reads all embedded files, by the paths under which they are served.
func files() map[string]*file {
	bodies := make(map[string][]byte)
	sum := sha256.New()
	err := fs.WalkDir(embedded, "files", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := embedded.ReadFile(name)
		bodies[strings.TrimPrefix(name, "files/")] = body
		sum.Write([]byte(name))
		sum.Write(body)
		return err
	})
	if err != nil {
		panic(err) // embedded files are in memory: reading cannot fail
	}
	version := "assets/" + hex.EncodeToString(sum.Sum(nil))[:16]
	served := make(map[string]*file, len(bodies))
	var modules []string
	for name, body := range bodies {
		if strings.HasPrefix(name, "js/") {
			modules = append(modules, `<link rel="modulepreload" href="`+version+"/"+name+`">`)
		}
		if name != document {
			served["/"+version+"/"+name] = newFile(name, body, "public, max-age=31536000, immutable")
		}
	}
	slices.Sort(modules)
	first := strings.NewReplacer(assets, version, preload,
		strings.Join(modules, "\n")).Replace(string(bodies[document]))
	served["/"] = newFile(document, []byte(first), "no-cache")
	return served
}

func newFile(name string, body []byte, cache string) *file {
	kind := mime.TypeByExtension(path.Ext(name))
	switch path.Ext(name) { // fixed here, because the tables of hosts differ
	case ".html":
		kind = "text/html; charset=utf-8"
	case ".js":
		kind = "text/javascript; charset=utf-8"
	case ".css":
		kind = "text/css; charset=utf-8"
	case ".svg":
		kind = "image/svg+xml"
	case "":
		kind = "text/plain; charset=utf-8"
	}
	f := &file{kind: kind, cache: cache, plain: newVariant(body, "")}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		z.Write(body)
		z.Close()
		if b.Len() < len(body) {
			f.packed = newVariant(b.Bytes(), "-gzip")
		}
	}
	return f
}

func newVariant(body []byte, suffix string) variant {
	sum := sha256.Sum256(body)
	return variant{body: body, tag: `"` + hex.EncodeToString(sum[:])[:24] + suffix + `"`}
}
