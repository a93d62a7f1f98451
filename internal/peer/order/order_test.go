package order_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/peer/order"
)

var start = time.Unix(1_800_000_000, 0)

func valid() order.Order {
	return order.Order{ID: "o1", Rollout: "r1", Host: "host-1", Verb: order.Try, Epoch: 3, Serial: 10,
		Knob: "sysctl:net.core.rmem_max", Expect: "212992", To: "4194304", NotBefore: start.Unix(),
		NotAfter: start.Add(time.Hour).Unix(), Deadline: 60, Reason: "read buffers <small>"}
}

func encode(t *testing.T, o order.Order) []byte {
	t.Helper()
	b, err := o.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// key returns a key that the test can make again.
func key(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune('a'+n)), ed25519.SeedSize)))
}

func keys(n byte) order.Keys {
	k := order.Keys{}
	for i := range n {
		k["key-"+string(rune('a'+i))] = key(i).Public().(ed25519.PublicKey)
	}
	return k
}

// TestOneSpelling refuses every other spelling of the same order.
func TestOneSpelling(t *testing.T) {
	b := string(encode(t, valid()))
	if o, err := order.Parse([]byte(b)); err != nil || o != valid() {
		t.Fatalf("%+v, %v", o, err)
	}
	for what, other := range map[string]string{
		"blank":       strings.Replace(b, ":", ": ", 1),
		"newline":     b + "\n",
		"case":        strings.Replace(b, `"host"`, `"Host"`, 1),
		"doubled key": strings.Replace(b, `{"id"`, `{"epoch":3,"id"`, 1),
		"unknown key": strings.Replace(b, `{"id"`, `{"run":"rm","id"`, 1),
		"order":       `{"rollout":"r1","id":"o1",` + strings.TrimPrefix(b, `{"id":"o1","rollout":"r1",`),
		"escape":      strings.Replace(b, `"host-1"`, "\"\\u0068ost-1\"", 1),
		"number":      strings.Replace(b, `"epoch":3`, `"epoch":3.0`, 1),
		"second":      b + b,
		"UTF-8":       strings.Replace(b, "read", "r\xffad", 1),
		"nothing":     "",
		"huge":        strings.Replace(b, "read", strings.Repeat("r", order.MaxBytes), 1),
	} {
		if _, err := order.Parse([]byte(other)); !errors.Is(err, order.ErrMalformed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestFieldsOfAnOrder(t *testing.T) {
	for what, change := range map[string]func(*order.Order){
		"no id":           func(o *order.Order) { o.ID = "" },
		"id of a path":    func(o *order.Order) { o.ID = "../x" },
		"long id":         func(o *order.Order) { o.ID = strings.Repeat("x", 65) },
		"no host":         func(o *order.Order) { o.Host = "" },
		"all hosts":       func(o *order.Order) { o.Host = "*" },
		"verb":            func(o *order.Order) { o.Verb = "run" },
		"file":            func(o *order.Order) { o.Knob = "/etc/passwd" },
		"two lines":       func(o *order.Order) { o.To = "1\n2" },
		"nothing changes": func(o *order.Order) { o.To = o.Expect },
		"too long valid":  func(o *order.Order) { o.NotAfter = o.NotBefore + 86401 },
		"ends early":      func(o *order.Order) { o.NotAfter = o.NotBefore },
		"overflow":        func(o *order.Order) { o.NotAfter = 1<<63 - 1 },
		"no deadline":     func(o *order.Order) { o.Deadline = 0 },
		"a day of trial":  func(o *order.Order) { o.Deadline = 86400 },
		"epoch 0":         func(o *order.Order) { o.Epoch = 0 },
		"serial 0":        func(o *order.Order) { o.Serial = 0 },
		"commit of none":  func(o *order.Order) { o.Verb, o.Deadline = order.Commit, 0 },
		"commit of self":  func(o *order.Order) { o.Verb, o.Deadline, o.Of = order.Commit, 0, o.ID },
		"commit longer":   func(o *order.Order) { o.Verb, o.Of = order.Commit, "o0" },
		"try of another":  func(o *order.Order) { o.Of = "o0" },
	} {
		o := valid()
		change(&o)
		if _, err := o.Encode(); !errors.Is(err, order.ErrMalformed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestSignatures(t *testing.T) {
	payload := encode(t, valid())
	sign := func(n ...byte) order.Envelope {
		e := order.Envelope{Payload: payload}
		for _, i := range n {
			e.Sign("key-"+string(rune('a'+i)), key(i))
		}
		return e
	}
	names, err := keys(3).Verify(sign(0, 2, 0))
	if err != nil || strings.Join(names, " ") != "key-a key-c" {
		t.Errorf("twice the same key counts once: %v, %v", names, err)
	}
	other := sign(0)
	other.Payload = append(append([]byte(nil), payload[:len(payload)-1]...), ' ', '}')
	renamed := sign(1)
	renamed.Signatures[0].Key = "key-a"
	plain := order.Envelope{Payload: payload, Signatures: []order.Signature{{Key: "key-a",
		Bytes: ed25519.Sign(key(0), payload)}}}
	for what, c := range map[string]struct {
		e    order.Envelope
		want error
	}{
		"none":            {sign(), order.ErrTooFew},
		"unknown":         {sign(4), order.ErrKeyUnknown},
		"good and bad":    {sign(0, 4), order.ErrKeyUnknown},
		"other bytes":     {other, order.ErrSignature},
		"another's name":  {renamed, order.ErrSignature},
		"without context": {plain, order.ErrSignature},
	} {
		if _, err := keys(3).Verify(c.e); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
	b, err := sign(0, 1).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if e, err := order.Open(b); err != nil || string(e.Payload) != string(payload) {
		t.Errorf("open: %v", err)
	}
	for what, bad := range map[string]string{
		"blank": " " + string(b), "many": strings.Replace(string(b), `"signatures":[`,
			`"signatures":[`+strings.Repeat(`{"key":"a","ed25519":"AAAA"},`, 5), 1), "null": "null",
		"short": strings.Replace(string(b), `"ed25519":"`, `"ed25519":"AAAA`, 1), "extra": string(b) + "{}",
	} {
		if _, err := order.Open([]byte(bad)); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}

func TestKeysFile(t *testing.T) {
	a := base64.StdEncoding.EncodeToString(key(0).Public().(ed25519.PublicKey))
	b := base64.StdEncoding.EncodeToString(key(1).Public().(ed25519.PublicKey))
	k, err := order.ParseKeys([]byte("# people\n\nann " + a + "\nbob " + b + "\n"))
	if err != nil || len(k) != 2 {
		t.Fatalf("%v, %v", k, err)
	}
	for what, text := range map[string]string{
		"one key twice":  "ann " + a + "\nbob " + a,
		"one name twice": "ann " + a + "\nann " + b,
		"no name":        a, "short": "ann AAAA", "blanks": "ann  " + a, "name": "Ann " + a,
	} {
		if _, err := order.ParseKeys([]byte(text)); !errors.Is(err, order.ErrKeys) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestLedgerAnswers(t *testing.T) {
	fsys := durable.NewMem()
	l, err := order.OpenLedger(fsys, "/state")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	first := valid()
	if err := l.Check(first, start); err != nil {
		t.Fatal(err)
	}
	if err := l.Take(first, encode(t, first)); err != nil {
		t.Fatal(err)
	}
	if err := l.Answered(first.ID, order.Answer{Order: first.ID, Code: order.InTrial}); err != nil {
		t.Fatal(err)
	}
	if e, known, err := l.Known(first, encode(t, first)); !known || err != nil || e.Answer.Code != order.InTrial {
		t.Errorf("the same again: %+v, %v, %v", e, known, err)
	}
	changed := first
	changed.To = "1"
	if _, _, err := l.Known(changed, encode(t, changed)); !errors.Is(err, order.ErrIDReused) {
		t.Errorf("other bytes with a known id: %v", err)
	}
	for what, c := range map[string]struct {
		change func(*order.Order)
		now    time.Time
		want   error
	}{
		"next":            {func(o *order.Order) { o.Serial++ }, start, nil},
		"other knob":      {func(o *order.Order) { o.Knob, o.Serial = "sysctl:net.core.wmem_max", 1 }, start, nil},
		"higher epoch":    {func(o *order.Order) { o.Epoch, o.Serial = 9, 11 }, start, nil},
		"lower epoch":     {func(o *order.Order) { o.Epoch, o.Serial = 2, 11 }, start, order.ErrOldEpoch},
		"same serial":     {func(o *order.Order) {}, start, order.ErrOldSerial},
		"reordered":       {func(o *order.Order) { o.Serial = 9 }, start, order.ErrOldSerial},
		"late":            {func(o *order.Order) { o.Serial++ }, start.Add(time.Hour), order.ErrTooLate},
		"early":           {func(o *order.Order) { o.Serial++ }, start.Add(-time.Second), order.ErrTooEarly},
		"clock of a year": {func(o *order.Order) { o.Serial++ }, start.AddDate(1, 0, 0), order.ErrTooLate},
	} {
		o := first
		o.ID = "o2"
		c.change(&o)
		if err := l.Check(o, c.now); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
}

// TestLedgerSurvives cuts the power at every operation of three orders. What was taken is known
// afterwards, and the numbers never go back.
func TestLedgerSurvives(t *testing.T) {
	for n := 0; ; n++ {
		disk := durable.NewMem()
		faulty := durable.NewFaulty(disk, durable.FailAt(n, errors.New("power cut")))
		taken := 0
		func() {
			l, err := order.OpenLedger(faulty, "/state")
			if err != nil {
				return
			}
			defer l.Close()
			for i := range 3 {
				o := valid()
				o.ID, o.Serial = o.ID+string(rune('0'+i)), o.Serial+uint64(i)
				if l.Take(o, encode(t, o)) != nil {
					return
				}
				taken++
				if l.Answered(o.ID, order.Answer{Order: o.ID, Code: order.InTrial}) != nil {
					return
				}
			}
		}()
		done := faulty.Operations() < n
		l, err := order.OpenLedger(disk.CrashClone(0.5, rand.New(rand.NewPCG(1, uint64(n)))), "/state")
		if err != nil {
			t.Fatalf("power cut at operation %d: %v", n, err)
		}
		_, serials := l.Numbers()
		if taken > 0 && serials["sysctl:net.core.rmem_max"] < uint64(9+taken) {
			t.Errorf("power cut at operation %d: %d orders taken, serial %v", n, taken, serials)
		}
		l.Close()
		if done {
			return
		}
	}
}

// TestLedgerIsRewritten takes more orders than the ledger remembers.
func TestLedgerIsRewritten(t *testing.T) {
	disk := durable.NewMem()
	l, err := order.OpenLedger(disk, "/state")
	if err != nil {
		t.Fatal(err)
	}
	const many = 5001
	for i := range many {
		o := valid()
		o.ID, o.Serial = fmt.Sprintf("o%d", i), uint64(i+1)
		if err := errors.Join(l.Take(o, encode(t, o)), l.Answered(o.ID, order.Answer{Code: order.Undone})); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
	l, err = order.OpenLedger(disk, "/state")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	epoch, serials := l.Numbers()
	if epoch != 3 || serials["sysctl:net.core.rmem_max"] != many || len(l.Entries()) != 1000 {
		t.Errorf("epoch %d, serials %v, %d entries", epoch, serials, len(l.Entries()))
	}
	if data, err := disk.ReadFile(filepath.Join("/state", "fleet.log")); err != nil || len(data) > 3<<20 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// FuzzOpen reads envelopes and orders of strangers. What is accepted has one spelling.
func FuzzOpen(f *testing.F) {
	o := valid()
	b, err := o.Encode()
	if err != nil {
		f.Fatal(err)
	}
	e := order.Envelope{Payload: b}
	e.Sign("key-a", key(0))
	whole, err := e.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(b)
	known := keys(1)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, payload := range [][]byte{data, func() []byte { e, _ := order.Open(data); return e.Payload }()} {
			o, err := order.Parse(payload)
			if err != nil {
				if !errors.Is(err, order.ErrMalformed) {
					t.Errorf("%v is not ErrMalformed", err)
				}
				continue
			}
			if again, err := o.Encode(); err != nil || string(again) != string(payload) {
				t.Errorf("%q becomes %q, %v", payload, again, err)
			}
		}
		if e, err := order.Open(data); err == nil {
			if _, err := known.Verify(e); err == nil && string(e.Payload) != string(b) {
				t.Errorf("a forged order: %q", e.Payload)
			}
		}
	})
}
