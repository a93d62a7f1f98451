package switchtest

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/gosnmp/gosnmp"

	"github.com/linerate/linerate/hub/internal/switches/mib"
)

// Fault spoils an answer to the nth request, from 0. It returns what to send instead.
type Fault func(n int, request, answer []byte) [][]byte

// Lost drops one answer in every.
func Lost(every int) Fault {
	return func(n int, _, answer []byte) [][]byte {
		if n%every == every-1 {
			return nil
		}
		return [][]byte{answer}
	}
}

// Serve answers at a port of 127.0.0.1 until the test ends. An answer has at most some bytes: what
// does not fit is cut, and an answer of which nothing fits is the error tooBig.
func Serve(tb testing.TB, t *Tree, community string, most int, faults ...Fault) (address string) {
	tb.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	done := make(chan struct{})
	tb.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	go func() {
		defer close(done)
		buffer := make([]byte, 1<<16)
		decoder := &gosnmp.GoSNMP{Version: gosnmp.Version2c, Community: community}
		for n := 0; ; n++ {
			size, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			request, err := decoder.SnmpDecodePacket(buffer[:size])
			if err != nil || request.Community != community {
				continue
			}
			out := [][]byte{answer(t, request, most)}
			for _, f := range faults {
				out = f(n, buffer[:size], out[0])
				if len(out) == 0 {
					break
				}
			}
			for _, b := range out {
				_, _ = conn.WriteTo(b, from)
			}
		}
	}()
	return conn.LocalAddr().String()
}

// Slow delays each answer.
func Slow(d time.Duration) Fault {
	return func(_ int, _, answer []byte) [][]byte {
		time.Sleep(d)
		return [][]byte{answer}
	}
}

func answer(t *Tree, request *gosnmp.SnmpPacket, most int) []byte {
	var oids []mib.OID
	for _, v := range request.Variables {
		o, err := mib.ParseOID(v.Name)
		if err != nil {
			return nil
		}
		oids = append(oids, o)
	}
	var got []mib.Binding
	if request.PDUType == gosnmp.GetBulkRequest {
		got, _ = t.Bulk(context.Background(), oids, int(request.MaxRepetitions))
	} else {
		got, _ = t.Get(context.Background(), oids)
	}
	reply := &gosnmp.SnmpPacket{Version: gosnmp.Version2c, Community: request.Community, PDUType: gosnmp.GetResponse,
		RequestID: request.RequestID}
	for _, b := range got {
		reply.Variables = append(reply.Variables, pdu(b))
	}
	for {
		b, err := reply.MarshalMsg()
		if err == nil && len(b) <= most {
			return b
		}
		if len(reply.Variables) == 0 {
			return b
		}
		if request.PDUType != gosnmp.GetBulkRequest || len(reply.Variables) <= 1 {
			reply.Error, reply.Variables = gosnmp.TooBig, nil
			continue
		}
		reply.Variables = reply.Variables[:len(reply.Variables)-1]
	}
}

func pdu(b mib.Binding) gosnmp.SnmpPDU {
	p := gosnmp.SnmpPDU{Name: "." + b.OID.String()}
	switch v := b.Value.(type) {
	case nil:
		p.Type = gosnmp.NoSuchInstance
		if b.End {
			p.Type = gosnmp.EndOfMibView
		}
	case uint64:
		p.Type, p.Value = gosnmp.Counter64, v
	case int64:
		p.Type, p.Value = gosnmp.Integer, int(v)
	case []byte:
		p.Type, p.Value = gosnmp.OctetString, v
	}
	return p
}
