package stamp

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/traffictest"
)

var testKey = []byte("a key of both ends")

// TestReflectorAnswersAnIndependentSender sends all kinds of packets with an implementation in
// another language.
func TestReflectorAnswersAnIndependentSender(t *testing.T) {
	key := hex.EncodeToString(testKey)
	// Unknown type 200 of 4 bytes; extra padding of 8.
	const unknown, padding = "80c80004" + "01020304", "80010008" + "a1a2a3a4a5a6a7a8"
	for _, c := range []struct {
		name, mode string
		key        []byte
		stateless  bool
		args       []string
		bytes      int
		tail       string // of the answer
	}{
		{"twamp light, 14 bytes", "light", nil, false, nil, 44, ""},
		{"twamp light, padded", "light", nil, false, []string{"--size", "100"}, 100, "0000"},
		{"stamp", "open", nil, false, nil, 44, ""},
		{"stamp, stateless", "open", nil, true, nil, 44, ""},
		{"stamp, ptp timestamps", "open", nil, false, []string{"--ptp"}, 44, ""},
		{"stamp, zeros behind", "open", nil, false, []string{"--size", "60"}, 60, strings.Repeat("00", 16)},
		{"stamp, tlvs", "open", nil, false, []string{"--tlv", unknown + padding}, 64,
			"80c8000401020304" + "00010008a1a2a3a4a5a6a7a8"},
		{"stamp, a tlv longer than the packet", "open", nil, false, []string{"--tlv", padding + "8004000911"}, 61,
			"00010008a1a2a3a4a5a6a7a8" + "4004000911"},
		{"authenticated", "auth", testKey, false, []string{key}, 112, ""},
		{"authenticated, ptp timestamps", "auth", testKey, false, []string{key, "--ptp"}, 112, ""},
		{"authenticated, tlvs with their hmac", "auth", testKey, false,
			[]string{key, "--tlv", unknown + padding}, 152, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			said := new(traffictest.Log)
			s, stop := startServer(t, ServerOptions{Key: c.key, Stateless: c.stateless, Log: said.Add, Address: ":0"})
			for i, a := range pythonSender(t, c.mode, s, 5, c.args...) {
				if a.Error != "" || a.Bytes != c.bytes || a.Seq != uint32(i) || a.Sender != uint32(i) || !a.Zero ||
					!a.Echo || !a.Order || a.Multiplier == 0 {
					t.Errorf("answer %d: %+v", i, a)
				}
				if wantSSID := c.mode != "light"; wantSSID != (a.SSID == 4711) && len(c.args) != 2 {
					t.Errorf("ssid %d", a.SSID)
				}
				if a.TTL == nil || *a.TTL == 0 {
					t.Errorf("ttl %v", a.TTL)
				}
				if a.RTT < 0 || a.RTT > int64(time.Minute) {
					t.Errorf("round trip %d ns", a.RTT)
				}
				if c.key != nil && !a.MAC {
					t.Error("wrong HMAC")
				}
				if !strings.HasSuffix(a.Hex, c.tail) {
					t.Errorf("ends in %s, want %s", a.Hex[len(a.Hex)-len(c.tail):], c.tail)
				}
				if c.bytes == 152 &&
					(!a.TLVMAC || !strings.Contains(a.Hex, "80c8000401020304"+"00010008a1a2a3a4a5a6a7a8"+"00080010")) {
					t.Errorf("tlvs %s, hmac right: %v", a.Hex[224:], a.TLVMAC)
				}
				if z := strings.Contains(c.name, "ptp"); a.Z != z {
					t.Errorf("z %v", a.Z)
				}
			}
			stop()
			if !c.stateless && !strings.Contains(said.String(), ": 5 packets reflected") {
				t.Errorf("log %q", said.String())
			}
		})
	}
}

// TestReflectorIsSilentToWrongKeys sends packets with a wrong key and without one.
func TestReflectorIsSilentToWrongKeys(t *testing.T) {
	said := new(traffictest.Log)
	s, stop := startServer(t, ServerOptions{Key: testKey, Log: said.Add})
	for _, a := range append(pythonSender(t, "auth", s, 1, "00ff", "--timeout", "0.5"),
		pythonSender(t, "open", s, 1, "--size", "120", "--timeout", "0.5")...) {
		if a.Error == "" {
			t.Errorf("answered: %+v", a)
		}
	}
	stop()
	if !strings.Contains(said.String(), "2 packets not reflected: without the right HMAC") {
		t.Errorf("log %q", said.String())
	}
}

// TestSenderWithAnIndependentReflector measures against an implementation in another language whose
// losses, counters and clock are known.
func TestSenderWithAnIndependentReflector(t *testing.T) {
	key := hex.EncodeToString(testKey)
	for _, c := range []struct {
		name     string
		args     []string
		options  ClientOptions
		bytes    int
		stateful bool
		up, down float64 // loss; exact where the reflector counts
	}{
		{"twamp light, 38 bytes back", []string{"light"}, ClientOptions{}, 0, true, 0, 0},
		{"twamp light, 41 bytes back", []string{"light41"}, ClientOptions{}, 0, true, 0, 0},
		{"stamp", []string{"open"}, ClientOptions{SSID: 9}, 200, true, 0, 0},
		{"stamp, stateless", []string{"open", "--stateless"}, ClientOptions{}, 0, false, 0, 0},
		{"stateless, losing up", []string{"open", "--stateless", "--drop-up", "10"}, ClientOptions{}, 0, false, 0.1, 0},
		{"losing up", []string{"open", "--drop-up", "10"}, ClientOptions{}, 0, true, 0.1, 0},
		{"losing down", []string{"open", "--drop-down", "10"}, ClientOptions{}, 0, true, 0, 0.1},
		{"losing both ways", []string{"open", "--drop-up", "5", "--drop-down", "7"}, ClientOptions{}, 0, true,
			0.2, 0.8 / 7},
		{"authenticated", []string{"auth", key}, ClientOptions{Key: testKey}, 0, true, 0, 0},
		{"authenticated, padded", []string{"auth", key}, ClientOptions{Key: testKey}, 300, true, 0, 0},
		{"a clock that is a day ahead", []string{"open", "--clock", "86400000000000"}, ClientOptions{}, 0, true, 0, 0},
		{"a clock that is in another era", []string{"open", "--clock", "-3000000000000000000"}, ClientOptions{}, 0,
			true, 0, 0},
		{"ptp timestamps of ours", []string{"open"}, ClientOptions{PTP: true}, 0, true, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.up+c.down == 0 {
				c.options.greetWait = time.Minute // no answer is lost, so the first one comes, however late
			}
			spec := traffic.Spec{Test: traffic.Ping, Gap: 3 * time.Millisecond, Interval: 150 * time.Millisecond,
				RequestBytes: c.bytes}
			r := traffictest.Longer(300*time.Millisecond, func(window time.Duration) *Report {
				spec.Duration = window
				r, err := Measure(t.Context(), pythonReflector(t, c.args...), spec, c.options, nil)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}, func(r *Report) bool { // enough for the reflector to drop some
				return r.RTT != nil && r.RTT.Count > 0 && r.UDP != nil && r.UDP.Sent >= 30
			})
			if r.RTT == nil || r.RTT.Count == 0 || r.RTT.Min <= 0 || r.RTT.Max > 60 || r.UDP == nil ||
				r.LossRatio == nil || len(r.Intervals) < 1 {
				t.Fatalf("%+v, rtt %+v", r.Result, r.RTT)
			}
			if r.UDP.Sent < 3 || r.UDP.Sent != r.UDP.Received+r.UDP.Lost {
				t.Errorf("%+v", r.UDP.DatagramCounts)
			}
			if r.Stateful != c.stateful {
				t.Errorf("counts: %v", r.Stateful)
			}
			// At least what the reflector dropped. A busy machine may lose more.
			if loss := c.up + c.down; *r.LossRatio < loss/2 {
				t.Errorf("loss %g, the reflector dropped %g", *r.LossRatio, loss)
			}
			if !c.stateful && (r.Up.Lost != nil || r.UDP.Up != nil || r.Up.Reordered != nil) {
				t.Error("losses split by direction without a counting reflector")
			}
			// With loss, a mark may have to be sent twice, and then there is no split. Otherwise
			// the split adds up, and shows the direction.
			if r.Up.Lost != nil {
				if *r.Up.Lost+*r.Down.Lost != r.UDP.Lost || r.UDP.Up.Received != r.UDP.Down.Sent ||
					r.UDP.Down.Received != r.UDP.Received {
					t.Errorf("up %d, down %d of %d", *r.Up.Lost, *r.Down.Lost, r.UDP.Lost)
				}
				half := float64(r.UDP.Sent) / 2
				if *r.Up.Lost < uint64(c.up*half) || *r.Down.Lost < uint64(c.down*half) {
					t.Errorf("%d of %d lost on the way up", *r.Up.Lost, r.UDP.Lost)
				}
			} else if c.stateful && r.UDP.Lost == 0 {
				t.Error("no split")
			}
			if r.Up.DelayVariation == nil || r.Down.DelayVariation == nil || r.Up.DelayVariation.Min != 0 ||
				r.Up.DelayVariation.Max > 60 {
				t.Errorf("variation %+v", r.Up.DelayVariation)
			}
			if r.Up.Delay != nil || r.Down.Delay != nil {
				t.Error("one-way delay from unsynchronised clocks")
			}
			if hasTTL := c.args[0] != "light"; hasTTL != (r.Hops != nil) {
				t.Errorf("hops %v", r.Hops)
			}
			if len(r.Warnings) != 0 {
				t.Errorf("warnings %q", r.Warnings)
			}
		})
	}
}

// TestSenderNamesWhatIsNoReflector has a wrong key and a closed port.
func TestSenderNamesWhatIsNoReflector(t *testing.T) {
	t.Parallel()
	spec := traffic.Spec{Test: traffic.Ping, Duration: 200 * time.Millisecond}
	s, _ := startServer(t, ServerOptions{Key: testKey})
	if _, err := Run(t.Context(), s.Addr().String(), spec, ClientOptions{Key: []byte("another"),
		greetWait: 100 * time.Millisecond}, nil); !errors.Is(err, traffic.ErrNoAnswer) ||
		!strings.Contains(err.Error(), "wrong keys") {
		t.Errorf("wrong key: %v", err)
	}
	s, stop := startServer(t, ServerOptions{})
	stop()
	if _, err := Run(t.Context(), s.Addr().String(), spec, ClientOptions{greetWait: 100 * time.Millisecond},
		nil); !errors.Is(err, traffic.ErrNoAnswer) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("closed port: %v", err)
	}
}
