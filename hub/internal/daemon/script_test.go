package daemon_test

import (
	"crypto/ed25519"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/linerate/linerate/hub/internal/daemon"
	"github.com/linerate/linerate/hub/internal/fleet/conduct"
	"github.com/linerate/linerate/hub/internal/fleet/desk"
	"github.com/linerate/linerate/hub/internal/fleet/member"
	"github.com/linerate/linerate/hub/internal/fleet/message"
	"github.com/linerate/linerate/hub/internal/fleet/rollout"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/peer/order"
)

// asHub makes a process of this test binary the hub.
const asHub = "LINERATE_AS_HUB"

// The program is the command "linerate-hub" of the scripts.
func TestMain(m *testing.M) {
	if os.Getenv(asHub) != "" {
		os.Exit(daemon.Main(os.Args, os.Stdin, os.Stdout, os.Stderr))
	}
	testscript.Main(m, map[string]func(){
		"linerate-hub": func() { os.Exit(daemon.Main(os.Args, os.Stdin, os.Stdout, os.Stderr)) },
		"fetch":        fetch,
		"orders":       orders,
		"token":        func() { fmt.Println(member.Token{}) },
	})
}

// TestScripts runs commands that end without a signal.
func TestScripts(t *testing.T) { scripts(t, "testdata/script") }

// TestHub runs whole hubs, each of which samples for some seconds.
func TestHub(t *testing.T) {
	testenv.Need(t, testenv.Long)
	scripts(t, "testdata/hub")
}

func scripts(t *testing.T, dir string) {
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		UpdateScripts:       os.Getenv("LINERATE_UPDATE") != "",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			// Scripts need it closed as well as open: no other process gets it meanwhile.
			port := fmt.Sprint(testenv.FreePorts(t, 1))
			e.Setenv("ADDRESS", "127.0.0.1:"+port)
			e.Setenv("PORT", port)
			return nil
		},
	})
}

// orders FILE [CHANGED] writes the plan of a change of one host, signed by ann with a key that no
// host knows. With a second argument, the plan is another one than the orders.
func orders() {
	d := &conduct.Draft{Kind: conduct.Apply, Epoch: 1, NotBefore: time.Now().Unix(), NotAfter: time.Now().Unix() + 3600,
		Plan: &rollout.Plan{ID: "r1", Hosts: []rollout.Host{{ID: "h1", Class: "c"}}, Timing: rollout.DefaultTiming(),
			Stage: []int{0}, Mate: []int{-1}, ByHost: []bool{true}, Names: []string{"c"}},
		Change: conduct.Change{Knob: "sysctl:net.core.rmem_max", To: "8388608", Metric: message.Sent,
			Window: 10 * time.Second, Pairs: 10},
		Hosts: []conduct.Host{{Name: "db1", Expect: "212992", Try: true}}}
	signed, err := d.Sign(func(e *order.Envelope) { e.Sign("ann", ed25519.NewKeyFromSeed(make([]byte, 32))) })
	if err == nil {
		if len(os.Args) > 2 {
			d.To = "4194304"
		}
		var b []byte
		if b, err = json.Marshal(desk.Signed{Draft: d, Orders: signed}); err == nil {
			err = os.WriteFile(os.Args[1], b, 0o600)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fetch [-user PASSWORD] [-status N] URL TEXT prints an answer once it has the status and contains
// the text. Until then it repeats the request; the deadline of the script ends it.
func fetch() {
	password := flag.String("user", "", "")
	status := flag.Int("status", http.StatusOK, "")
	flag.Parse()
	client := &http.Client{
		Timeout:       time.Minute,
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for {
		r, err := http.NewRequest(http.MethodGet, flag.Arg(0), nil)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		if *password != "" {
			r.SetBasicAuth("linerate", *password)
		}
		if a, err := client.Do(r); err == nil {
			b, err := io.ReadAll(a.Body)
			a.Body.Close()
			if err == nil && a.StatusCode == *status && strings.Contains(string(b), flag.Arg(1)) {
				fmt.Print(string(b))
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}
