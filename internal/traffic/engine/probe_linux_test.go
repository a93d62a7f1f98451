package engine

import (
	"errors"
	"testing"
	"time"
)

// refusingSource is a way to send that the kernel refuses.
type refusingSource struct{ err error }

func (s refusingSource) send(int, int) (int, error) { return 0, s.err }
func (s refusingSource) close()                     {}

// changingSource sends one bit wrong in every piece.
type changingSource struct {
	conn  *Conn
	wrong []byte
}

func (s *changingSource) send(at, n int) (int, error) {
	copy(s.wrong, ring()[at:at+n])
	s.wrong[0] ^= 1
	return s.conn.write(s.wrong[:n])
}
func (s *changingSource) close() {}

// TestProbeOfWhatIsRefused ends with the kernel's answer and does not wait for data that will never
// arrive: three such waits are longer than the far end of a test waits for its start. The probe
// distinguishes changed payload from missing payload.
func TestProbeOfWhatIsRefused(t *testing.T) {
	refusal := errors.New("function not implemented")
	for _, receive := range []ReceiveMethod{ReceiveCopy, ReceiveTruncate} {
		near, far := connPair(t, ConnOptions{})
		ended := make(chan error, 1)
		go func() { ended <- probeSource(refusingSource{refusal}, copyBytes, near, far, receive, time.Hour) }()
		select {
		case err := <-ended:
			if !errors.Is(err, refusal) {
				t.Errorf("%s: %v", receive, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: waits for all of an hour, though nothing can come", receive)
		}
		near, far = connPair(t, ConnOptions{})
		if err := probeSource(&changingSource{near, make([]byte, copyBytes)}, copyBytes, near, far,
			receive, time.Hour); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: a changed payload: %v", receive, err)
		}
	}
}
