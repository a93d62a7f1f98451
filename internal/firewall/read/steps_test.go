package read

import (
	"strings"
	"testing"
)

// TestSteps: commands that look for rules again and again, which a stranger may have written, take
// a bounded number of steps, whatever their kind. Without them a text of any length takes none.
func TestSteps(t *testing.T) {
	const most, n = 10_000, 400
	rules := strings.Repeat("-A INPUT -p tcp --dport 1 -j DROP\n", n)
	for text, fits := range map[string]bool{
		rules: true,
		rules + "-D INPUT -p tcp --dport 1 -j DROP\n":                            true,
		rules + "-D INPUT -p udp -j DROP\n":                                      false, // it is compared with all
		rules + "-N c\n-X c\n":                                                   true,
		rules + strings.Repeat("-N c\n-X c\n", n):                                false,
		rules + strings.Repeat("-I INPUT -j DROP\n", n):                          false,
		rules + strings.Repeat("-R INPUT 1 -j DROP\n", n):                        true,
		rules + strings.Repeat("-I INPUT -j DROP\n-D INPUT 1\n", n/4):            true,
		strings.Repeat("-N a%\n", n) + strings.Repeat("-F a0\n", n):              false,
		strings.Repeat("-N a%\n", n/10) + strings.Repeat("-A a0 -j DROP\n", 100): true,
	} {
		for i := 0; strings.Contains(text, "%"); i++ {
			text = strings.Replace(text, "%", string(rune('0'+i%10))+strings.Repeat("x", i/10), 1)
		}
		_, err := iptables(strings.NewReader("*filter\n"+text+"COMMIT\n"), nil, most)
		tooMany := err != nil && strings.Contains(err.Error(), "too often")
		if tooMany == fits || err != nil && !tooMany && fits {
			t.Errorf("%.80q…: %v", text[len(text)-min(len(text), 80):], err)
		}
	}
}
