package browsertest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/linerate/linerate/internal/base/testenv"
)

// patience bounds the wait for a condition. It measures no speed, and only ends a wait for what
// never happens.
const patience = 2 * time.Minute

var browser struct {
	ctx  context.Context
	stop []func()
	err  error
	once sync.Once
}

// TestMain closes the browser that all tests share.
func TestMain(m *testing.M) {
	code := m.Run()
	for i := len(browser.stop) - 1; i >= 0; i-- {
		browser.stop[i]()
	}
	os.Exit(code)
}

// startBrowser starts Chromium once. It resolves no host but this one, so a request of the page to
// another host would fail, and is counted.
func startBrowser() {
	path, err := exec.LookPath("chromium")
	if err != nil {
		browser.err = fmt.Errorf("%w: run dev/setup", err)
		return
	}
	home, err := os.MkdirTemp("", "linerate-page-")
	if err != nil {
		browser.err = err
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(home),
		chromedp.WindowSize(1440, 1000), chromedp.WSURLReadTimeout(patience),
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"),
		chromedp.Flag("no-proxy-server", true),
		chromedp.Env("TZ=Europe/Berlin", "HOME="+home, "TMPDIR="+home, "LANG=C.UTF-8"))
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stop := chromedp.NewContext(allocator)
	browser.ctx = ctx
	browser.stop = []func(){func() { os.RemoveAll(home) }, stopAllocator, stop}
	browser.err = chromedp.Do(ctx)
}

// tab is a browser tab with the page of one fake hub. It collects errors.
type tab struct {
	*testing.T
	ctx  context.Context
	base string

	mu       sync.Mutex
	errors   []string // of the console, exceptions, and violations of the policy
	foreign  []string // requests to another origin
	expected string   // of errors: a part of those that are part of the test
}

// open starts a fake hub and a tab, and loads nothing. Tests with a tab run in parallel: each
// believes that its own has the focus.
func open(t *testing.T, f *fake) *tab {
	t.Helper()
	testenv.Need(t, testenv.Browser)
	t.Parallel()
	if browser.once.Do(startBrowser); browser.err != nil {
		testenv.Missing(t, testenv.Browser, "start Chromium: ", browser.err)
	}
	ctx, stop := chromedp.NewContext(browser.ctx)
	t.Cleanup(stop)
	tb := &tab{T: t, ctx: ctx, base: f.serve(t)}
	for _, err := range []error{chromedp.Listen(ctx, tb.heard), called(ctx, network.Enable, network.EnableParams{}),
		called(ctx, log.Enable, cdp.Empty{}), called(ctx, runtime.Enable, cdp.Empty{}),
		called(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})} {
		if err != nil {
			t.Fatalf("open tab: %v", err)
		}
	}
	t.Cleanup(func() {
		tb.mu.Lock()
		defer tb.mu.Unlock()
		for _, e := range tb.errors {
			if tb.expected == "" || !strings.Contains(e, tb.expected) {
				t.Errorf("the browser says: %s", e)
			}
		}
		for _, r := range tb.foreign {
			t.Errorf("request to another origin: %s", r)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, q := range f.wrong {
			t.Errorf("no PromQL: %s", q)
		}
	})
	return tb
}

// called runs a command of the browser and returns its error.
func called[P, R any](ctx context.Context, command cdp.Command[P, R], params P) error {
	_, err := chromedp.Call(ctx, command, params)
	return err
}

func (t *tab) heard(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		t.errors = append(t.errors, "exception: "+describe(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			var words []string
			for _, a := range e.Args {
				words = append(words, string(a.Value)+a.Description)
			}
			t.errors = append(t.errors, "console: "+strings.Join(words, " "))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Source == log.EntrySourceSecurity {
			t.errors = append(t.errors, "log: "+e.Entry.Text+" "+e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err == nil && u.Scheme != "data" && u.Scheme != "blob" &&
			!strings.HasPrefix(e.Request.URL, t.base+"/") {
			t.foreign = append(t.foreign, e.Request.URL)
		}
	}
}

// expect allows errors of the browser that contain a text: those that the test causes itself.
func (t *tab) expect(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expected = text
}

func describe(d *runtime.ExceptionDetails) string {
	text := d.Text
	if d.Exception != nil {
		text += " " + d.Exception.Description
	}
	return text + " " + d.URL
}

func (t *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.ctx, patience)
	defer stop()
	t.must(chromedp.Do(ctx, actions...))
}

// must ends the test for an error of the browser, and logs the visible page, which shows more than
// the error.
func (t *tab) must(err error) {
	t.Helper()
	if err != nil {
		more, cancel := context.WithTimeout(t.ctx, 5*time.Second)
		defer cancel()
		text, wrong := chromedp.Run(more,
			chromedp.Evaluate[string](`location.hash + " " + document.body.innerText.slice(0, 1500)`))
		t.Logf("the page: %s %v", text, wrong)
		t.mu.Lock()
		t.Logf("the browser: %q", t.errors)
		t.mu.Unlock()
		t.Fatalf("drive browser: %v", err)
	}
}

// visit loads an address of the page from scratch.
func (t *tab) visit(address string) {
	t.Helper()
	t.run(chromedp.Navigate("about:blank"), chromedp.Navigate(t.base+"/"+address))
	// The view is made anew when the state of the hub is known, because the fake has another time.
	t.wait(`!document.querySelector("main[aria-busy]")`)
}

// wait waits until a JavaScript expression is true; it evaluates it at each frame.
func (t *tab) wait(expression string) {
	t.Helper()
	get[bool](t, "new Promise((done) => { const look = () => ("+expression+
		") ? done(true) : requestAnimationFrame(look); look(); })")
}

// get evaluates an expression, and awaits a promise.
func get[T any](t *tab, expression string) T {
	t.Helper()
	ctx, stop := context.WithTimeout(t.ctx, patience)
	defer stop()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Logf("evaluated: %s", expression)
	}
	t.must(err)
	return v
}

// drawn waits until the visible graphs are drawn, or show why not.
func (t *tab) drawn() {
	t.Helper()
	t.wait(`document.querySelector(".graph") && [...document.querySelectorAll(".graph")].every((g) => ` +
		`g.dataset.state !== "loading")`)
}

func (t *tab) size(width, height int64) {
	t.Helper()
	t.run(chromedp.EmulateViewport(width, height))
}

func (t *tab) dark(on bool) {
	t.Helper()
	value := "light"
	if on {
		value = "dark"
	}
	t.must(called(t.ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value},
				{Name: "prefers-reduced-motion", Value: "reduce"}}}))
}

// keys types keys.
func (t *tab) keys(keys ...string) {
	t.Helper()
	for _, k := range keys {
		t.run(chromedp.KeyEvent(k))
	}
}

// drag drags the mouse over a graph from one part of its width to another.
func (t *tab) drag(graph string, from, to float64, modifiers int64) {
	t.Helper()
	box := t.box("#graph-" + graph + " .u-over")
	for _, step := range []struct {
		kind    input.DispatchMouseEventType
		part    float64
		buttons int64
	}{{chromedp.MouseMoved, from, 0}, {chromedp.MousePressed, from, 1}, {chromedp.MouseMoved, (from + to) / 2, 1},
		{chromedp.MouseMoved, to, 1}, {chromedp.MouseReleased, to, 0}} {
		p := input.DispatchMouseEventParams{Type: step.kind, X: box.X + box.W*step.part, Y: box.Y + box.H/2,
			Modifiers: modifiers, Buttons: step.buttons}
		if step.kind != chromedp.MouseMoved {
			p.Button, p.ClickCount = "left", 1
		} else if step.buttons != 0 {
			p.Button = "left"
		}
		t.must(called(t.ctx, input.DispatchMouseEvent, p))
	}
}

type rectangle struct{ X, Y, W, H float64 }

// box returns the position of an element in the window, after scrolling it into view.
func (t *tab) box(selector string) rectangle {
	t.Helper()
	return get[rectangle](t, `(() => { const e = document.querySelector(`+strconv.Quote(selector)+
		`); e.scrollIntoView({block: "center"}); const r = e.getBoundingClientRect(); return {X: r.left, Y: `+
		`r.top, W: r.width, H: r.height}; })()`)
}

// picture stores a screenshot: in the directory LINERATE_SCREENSHOTS, or where go test -artifacts
// puts it.
func (t *tab) picture(name string) {
	t.Helper()
	dir := os.Getenv("LINERATE_SCREENSHOTS")
	if dir == "" {
		dir = t.ArtifactDir()
	}
	ctx, stop := context.WithTimeout(t.ctx, patience)
	defer stop()
	b, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	t.must(err)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), b, 0o644); err != nil {
		t.Fatal(err)
	}
}
