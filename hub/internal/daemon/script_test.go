package daemon_test

import (
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/linerate/linerate/hub/internal/daemon"
	"github.com/linerate/linerate/internal/base/testenv"
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
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			e.Setenv("ADDRESS", l.Addr().String())
			e.Setenv("PORT", fmt.Sprint(l.Addr().(*net.TCPAddr).Port))
			return l.Close()
		},
	})
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
