package guest

import (
	"bytes"
	"encoding/json"
	"net"
	"os/exec"
	"testing"
	"time"
)

// TestOutputThatTheHostTakesLate: a host that begins to read after the grace gets all that a
// program wrote, also where a child of the program keeps the output open.
func TestOutputThatTheHostTakesLate(t *testing.T) {
	const bytesOut = 60_000 // less than a pipe holds: the program ends while its output is on the way
	host, inside := net.Pipe()
	defer host.Close()
	defer inside.Close()
	p := &program{Cmd: exec.Command("sh", "-c", "sleep 600 & echo $!; head -c 60000 /dev/zero")}
	if err := p.start(outputTo{newTalk(inside)}, nil); err != nil {
		t.Fatal(err)
	}
	took := make(chan []byte)
	go func() {
		time.Sleep(300 * time.Millisecond) // no verdict: a host that reads early gets the same
		var all []byte
		for d := json.NewDecoder(host); ; {
			var m message
			if d.Decode(&m) != nil || m.Status != nil {
				took <- all
				return
			}
			all = append(all, m.Output...)
		}
	}()
	p.wait(time.Millisecond)
	_ = newTalk(inside).say(message{Status: new(int)})
	child, zeros, _ := bytes.Cut(<-took, []byte("\n"))
	if len(zeros) != bytesOut {
		t.Errorf("%d bytes of %d arrived", len(zeros), bytesOut)
	}
	if err := exec.Command("kill", string(child)).Run(); err != nil {
		t.Errorf("end the child: %v", err)
	}
}
