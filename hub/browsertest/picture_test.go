package browsertest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// largestPicture bounds a picture of the documentation, in bytes.
const largestPicture = 60_000

// TestPictures takes the pictures of the documentation: the page of the hub, and the page of a tune
// as `report --html` writes it. LINERATE_PICTURES names their directory; without it they are kept
// with the test. The pixels of a browser differ from version to version, so they are not compared.
func TestPictures(t *testing.T) {
	tb := open(t, &fake{interfaces: 4})
	tb.size(1000, 620)
	tb.dark(false)
	tb.visit("#/")
	tb.wait(`document.querySelectorAll(".interface-row").length > 3 && document.querySelector(".spark").dataset.at && ` +
		`document.querySelector(".finding")`)
	// Between a phone and a wide screen every title of the table has room for its words.
	if tall := get[[]string](tb, `[...document.querySelectorAll("thead button.sort")].filter((b) => `+
		`b.offsetHeight > 60).map((b) => b.textContent)`); len(tall) > 0 {
		t.Errorf("titles of more than three lines: %v", tall)
	}
	if wide := get[[]string](tb, overflow); len(wide) > 0 {
		t.Errorf("wider than the screen: %v", wide)
	}
	tb.photo("hub")

	html, err := os.ReadFile("../../internal/report/page/testdata/tune.html")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(string(html))
	if err != nil {
		t.Fatal(err)
	}
	tb.run(chromedp.Navigate("about:blank"))
	get[bool](tb, "(document.open(), document.write("+string(text)+"), document.close(), true)")
	tb.size(1000, 900)
	tb.wait(`document.querySelector("svg") && document.readyState === "complete"`)
	tb.photo("report")
}

// photo takes a picture that is small enough for the documentation.
func (t *tab) photo(name string) {
	t.Helper()
	dir := os.Getenv("LINERATE_PICTURES")
	if dir == "" {
		dir = t.ArtifactDir()
	}
	quality := int64(60)
	got, err := chromedp.Call(t.ctx, page.CaptureScreenshot,
		page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatWebp, Quality: &quality})
	t.must(err)
	if n := len(got.Data); n < 2000 || n > largestPicture {
		t.Errorf("%s: a picture of %d bytes; at most %d", name, n, largestPicture)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".webp"), got.Data, 0o644); err != nil {
		t.Fatal(err)
	}
}
