package cli

import (
	"bytes"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSignalEndsWaitForInput sends SIGTERM to commands that wait for standard input or for the
// writer of a named pipe: each ends at the first one, as interrupted.
func TestSignalEndsWaitForInput(t *testing.T) {
	// Between two commands this process must survive the signal.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGTERM)
	defer signal.Stop(caught)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	const key = "HHEV-S9H6-89S6-T420-9RK6-RFAV-GW1Z"
	for line, want := range map[string]int{
		"check-advice -":                                    exitInterrupted,
		"plan -":                                            exitInterrupted,
		"export --format shell --from -":                    exitInterrupted,
		"report -":                                          exitInterrupted,
		"resolver measure 127.0.0.1 --names -":              exitInterrupted,
		"firewall cost --from -":                            exitInterrupted,
		"measure 127.0.0.1 --key -":                         exitInterrupted,
		"profile compare - -":                               exitInterrupted,
		"inspect --from -":                                  exitInterrupted,
		"diagnose --from -":                                 exitInterrupted,
		"apply - --dry-run":                                 exitInterrupted,
		"tune 127.0.0.1 --advice - --key " + key:            exitInterrupted,
		"undo --all --key -":                                exitInterrupted,
		"serve --listen 127.0.0.1:0 --key -":                exitOK,
		"check-advice " + pipe:                              exitInterrupted,
		"plan " + pipe:                                      exitInterrupted,
		"export --format shell --from " + pipe:              exitInterrupted,
		"report " + pipe:                                    exitInterrupted,
		"resolver measure 127.0.0.1 --names " + pipe:        exitInterrupted,
		"firewall optimise --from " + pipe:                  exitInterrupted,
		"measure 127.0.0.1 --key-file " + pipe:              exitInterrupted,
		"profile compare " + pipe + " " + pipe:              exitInterrupted,
		"inspect --from " + pipe:                            exitInterrupted,
		"diagnose --from " + pipe:                           exitInterrupted,
		"apply " + pipe + " 127.0.0.1 --key " + key:         exitInterrupted,
		"measure 127.0.0.1 --json-lines --key-file " + pipe: exitInterrupted,
	} {
		t.Run(line, func(t *testing.T) {
			silent, writer := io.Pipe()
			defer writer.Close()
			var out, said bytes.Buffer
			a := &app{in: silent, out: &out, err: &said, env: os.Getenv, state: t.TempDir()}
			status := make(chan int, 1)
			go func() { status <- a.run(strings.Fields(line)) }()
			for deadline := time.Now().Add(time.Minute); ; {
				select {
				case got := <-status:
					if got != want {
						t.Errorf("status %d, want %d: %s", got, want, &said)
					}
					return
				case <-time.After(20 * time.Millisecond):
				}
				if time.Now().After(deadline) {
					t.Fatal("still waits a minute after the signal")
				}
				if err := unix.Kill(os.Getpid(), unix.SIGTERM); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
