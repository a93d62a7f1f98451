package text

import (
	"fmt"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// TestLayersOfManyInterfaces draws a document that claims as many interfaces as an archive may. The
// guard is against work that grows with the square.
func TestLayersOfManyInterfaces(t *testing.T) {
	const n = host.MaxInterfaces
	user, system := sys.ProcessTimes()
	wide := []host.Interface{{Name: "bond", Virtual: true}}
	wide[0].Kind = "bond"
	for i := range n {
		name := fmt.Sprintf("v%d", i)
		port := host.Interface{Name: name}
		port.Above = []string{"bond"}
		wide = append(wide, port)
		wide[0].Below = append(wide[0].Below, name)
	}
	rows := layers(wide)
	if len(rows) != n+1 || rows[n].members[0].Name != "bond" {
		t.Errorf("%d rows; the last is %v", len(rows), rows[len(rows)-1].members[0].Name)
	}
	var chain []host.Interface
	for i := range n {
		dev := host.Interface{Name: fmt.Sprintf("v%d", i), Virtual: true}
		dev.Kind = "vlan"
		if i > 0 {
			dev.Below = []string{fmt.Sprintf("v%d", i-1)}
		}
		chain = append(chain, dev)
	}
	if rows := layers(chain); len(rows) != n || rows[n-1].depth != n-1 {
		t.Errorf("%d rows", len(rows))
	}
	for i := range chain {
		chain[i].Carriers = []string{"v0"}
	}
	if got := carries(chain)["v0"]; got != fmt.Sprintf("%d vlan", n) {
		t.Errorf("carries %q", got)
	}
	// Of the processor, which other programs may be using.
	nowUser, nowSystem := sys.ProcessTimes()
	if took := nowUser + nowSystem - user - system; took > time.Minute {
		t.Errorf("took %v", took)
	}
}
