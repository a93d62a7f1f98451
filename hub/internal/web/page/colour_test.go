package page

import (
	"crypto/sha256"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func sha256Sum(b []byte) [32]byte { return sha256.Sum256(b) }

// themes reads the colours out of the style sheet: light, dark by the system, dark by choice.
func themes(t *testing.T) []map[string]string {
	t.Helper()
	sheet, err := embedded.ReadFile("files/base.css")
	if err != nil {
		t.Fatal(err)
	}
	var found []map[string]string
	for _, block := range regexp.MustCompile(`(?s):root[^{]*\{([^}]*--paper[^}]*)\}`).FindAllStringSubmatch(
		string(sheet), -1) {
		colours := make(map[string]string)
		for _, d := range regexp.MustCompile(`--([a-z0-9-]+): (#[0-9a-f]+)`).FindAllStringSubmatch(block[1], -1) {
			colours[d[1]] = d[2]
		}
		found = append(found, colours)
	}
	if len(found) != 3 || len(found[0]) < 25 {
		t.Fatalf("%d themes in the style sheet, want 3: did its form change?", len(found))
	}
	return found
}

// linear is a colour as light, each part from 0 to 1.
func linear(t *testing.T, hex string) [3]float64 {
	t.Helper()
	var out [3]float64
	for i := range out {
		v, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(v) / 255
		if c <= 0.04045 {
			out[i] = c / 12.92
		} else {
			out[i] = math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	return out
}

// contrast is that of WCAG 2: 1 to 21.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	of := func(c [3]float64) float64 { return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2] }
	x, y := of(linear(t, a)), of(linear(t, b))
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// TestContrast computes the contrasts of the palette: 4.5 for text, 3 for lines of graphs, as WCAG
// 2.2 asks (1.4.3, 1.4.11).
func TestContrast(t *testing.T) {
	for i, c := range themes(t) {
		theme := []string{"light", "dark by the system", "dark by choice"}[i]
		for _, ground := range []string{"card", "paper", "band"} {
			for _, text := range []string{"ink", "soft", "link", "good", "warn", "bad"} {
				if got := contrast(t, c[text], c[ground]); got < 4.5 {
					t.Errorf("%s: text %s on %s has the contrast %.2f, under 4.5", theme, text, ground, got)
				}
			}
		}
		for _, line := range strings.Fields("in out s1 s2 s3 s4 s5 s6 s7 s8 a b bad focus") {
			if got := contrast(t, c[line], c["card"]); got < 3 {
				t.Errorf("%s: %s on a card has the contrast %.2f, under 3", theme, line, got)
			}
		}
		// The letters of markers and marks are in the colour of the card.
		for _, mark := range strings.Fields("s1 s2 s3 s4 s5 s7 s8 bad ink a b link") {
			want := 4.5
			if mark != "link" {
				want = 3.5 // one bold letter, said in words beside it too
			}
			if got := contrast(t, c["card"], c[mark]); got < want {
				t.Errorf("%s: a letter on %s has the contrast %.2f, under %.1f", theme, mark, got, want)
			}
		}
	}
}

// dichromat are the matrices of Machado, Oliveira and Fernandes (2009) at severity 1, on linear
// light.
var dichromat = map[string][3][3]float64{
	"all colours":  {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanopia":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"tritanopia":   {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

// oklab is a colour where distances are those that people see (Ottosson 2020).
func oklab(c [3]float64) [3]float64 {
	l := math.Cbrt(0.4122214708*c[0] + 0.5363325363*c[1] + 0.0514459929*c[2])
	m := math.Cbrt(0.2119034982*c[0] + 0.6806995451*c[1] + 0.1073969566*c[2])
	s := math.Cbrt(0.0883024619*c[0] + 0.2817188376*c[1] + 0.6299787005*c[2])
	return [3]float64{0.2104542553*l + 0.7936177850*m - 0.0040720468*s, 1.9779984951*l - 2.4285922050*m +
		0.4505937099*s, 0.0259040371*l + 0.7827717662*m - 0.8086757660*s}
}

func seen(t *testing.T, hex string, by [3][3]float64) [3]float64 {
	c := linear(t, hex)
	var out [3]float64
	for i := range out {
		out[i] = min(max(by[i][0]*c[0]+by[i][1]*c[1]+by[i][2]*c[2], 0), 1)
	}
	return oklab(out)
}

// TestColourBlind checks for each kind of colour blindness that colours which alone carry meaning
// stay distinct: in and out, the first lines of a graph, the two marked intervals. A letter or a
// place marks the rest too (events, the stack of modes).
func TestColourBlind(t *testing.T) {
	pairs := [][2]string{{"in", "out"}, {"a", "b"}, {"s1", "s2"}, {"s1", "s5"}, {"s2", "s3"}, {"s1", "s3"}}
	for i, c := range themes(t) {
		for name, by := range dichromat {
			for _, p := range pairs {
				x, y := seen(t, c[p[0]], by), seen(t, c[p[1]], by)
				if d := math.Sqrt((x[0]-y[0])*(x[0]-y[0]) + (x[1]-y[1])*(x[1]-y[1]) +
					(x[2]-y[2])*(x[2]-y[2])); d < 0.06 {
					t.Errorf("theme %d, %s: %s and %s are %.3f apart, under 0.06", i, name, p[0], p[1], d)
				}
			}
		}
	}
}

// TestDarkTwice holds both ways to the dark colours equal.
func TestDarkTwice(t *testing.T) {
	all := themes(t)
	for name, v := range all[1] {
		if all[2][name] != v {
			t.Errorf("--%s is %s by the system and %s by choice", name, v, all[2][name])
		}
	}
	if len(all[1]) != len(all[2]) {
		t.Errorf("%d colours by the system, %d by choice", len(all[1]), len(all[2]))
	}
}
