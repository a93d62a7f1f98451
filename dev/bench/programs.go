package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Ports of the servers on the far host.
const (
	ourPort      = "7070"
	iperf3Port   = "5201"
	iperf2Port   = "5001"
	nuttcpPort   = "5000"
	sockperfPort = "11111"
	plainPort    = "5999"
)

// program measures one figure once, for about the given seconds. bytes is the carried payload, from
// which the cost follows; 0 where the figure is not a throughput.
type program struct {
	name  string
	needs string // the executable; empty: always present
	run   func(ctx context.Context, w *world, seconds float64) (value, bytes float64, err error)
}

// linerate runs `linerate measure` with the given flags and picks a figure of its document.
func linerate(exe, key string, pick func(result) float64, flags ...string) program {
	return program{name: "linerate", run: func(ctx context.Context, w *world, seconds float64) (float64,
		float64, error) {
		args := append([]string{exe, "measure", farIP + ":" + ourPort, "--key", key, "--json", "--progress", "off",
			"--duration", fmt.Sprintf("%.3fs", seconds)}, flags...)
		out, err := w.run(ctx, args...)
		if err != nil {
			return 0, 0, err
		}
		var doc struct {
			Tests []result `json:"tests"`
		}
		if err := json.Unmarshal(out, &doc); err != nil || len(doc.Tests) != 1 {
			return 0, 0, fmt.Errorf("linerate: no document of one test: %w", err)
		}
		return pick(doc.Tests[0]), doc.Tests[0].Bytes, nil
	}}
}

// result has the fields that bench reads of an entry of tests[] in linerate.measure/1.
type result struct {
	Bytes        float64 `json:"bytes"`
	Throughput   float64 `json:"throughput_bits_per_second"`
	Transactions float64 `json:"transactions_per_second"`
	Packets      float64 `json:"packets_per_second"`
	Pacing       struct {
		Target   float64 `json:"target_bits_per_second"`
		Achieved float64 `json:"achieved_bits_per_second"`
	} `json:"pacing"`
	Ends struct {
		Local struct {
			Cost float64 `json:"test_cpu_seconds_per_gigabyte"`
		} `json:"local"`
	} `json:"ends"`
}

func throughput(r result) float64   { return r.Throughput }
func transactions(r result) float64 { return r.Transactions }
func packets(r result) float64      { return r.Packets }

// perNearCPU returns the gigabytes that a CPU second of the sending threads carried, in the
// measured window; 0: not known.
func perNearCPU(r result) float64 {
	if r.Ends.Local.Cost <= 0 {
		return 0
	}
	return 1 / r.Ends.Local.Cost
}

// iperf3 runs the client with the given flags. Bulk figures are what the server received.
func iperf3(name string, udp bool, flags ...string) program {
	return program{name: name, needs: "iperf3", run: func(ctx context.Context, w *world, seconds float64) (float64,
		float64, error) {
		args := append([]string{"iperf3", "-c", farIP, "-p", iperf3Port, "-J", "-t", wholeSeconds(seconds)}, flags...)
		out, err := w.run(ctx, args...)
		if err != nil {
			return 0, 0, err
		}
		return parseIperf3(out, udp)
	}}
}

func parseIperf3(out []byte, udp bool) (value, bytes float64, err error) {
	var doc struct {
		End struct {
			Received struct {
				Bytes float64 `json:"bytes"`
				Rate  float64 `json:"bits_per_second"`
			} `json:"sum_received"`
			Sum struct {
				Packets float64 `json:"packets"`
				Lost    float64 `json:"lost_packets"`
				Seconds float64 `json:"seconds"`
			} `json:"sum"`
		} `json:"end"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		return 0, 0, fmt.Errorf("iperf3: %w", err)
	}
	if doc.Error != "" {
		return 0, 0, fmt.Errorf("iperf3: %s", doc.Error)
	}
	if udp {
		if doc.End.Sum.Seconds <= 0 {
			return 0, 0, fmt.Errorf("iperf3: no sum of datagrams")
		}
		return (doc.End.Sum.Packets - doc.End.Sum.Lost) / doc.End.Sum.Seconds, 0, nil
	}
	return doc.End.Received.Rate, doc.End.Received.Bytes, nil
}

// iperf2 runs the client with the given flags. The last line of its CSV is the sum.
func iperf2(name string, flags ...string) program {
	return program{name: name, needs: "iperf", run: func(ctx context.Context, w *world, seconds float64) (float64,
		float64, error) {
		out, err := w.run(ctx,
			append([]string{"iperf", "-c", farIP, "-p", iperf2Port, "-y", "C", "-t", wholeSeconds(seconds)},
				flags...)...)
		if err != nil {
			return 0, 0, err
		}
		return parseIperf2(out)
	}}
}

// parseIperf2 reads fields 8 (bytes) and 9 (bits per second) of the last line of `iperf -y C`.
func parseIperf2(out []byte) (value, bytes float64, err error) {
	fields := strings.Split(lastLine(out), ",")
	if len(fields) < 9 {
		return 0, 0, fmt.Errorf("iperf: %d fields in %q", len(fields), lastLine(out))
	}
	if bytes, err = strconv.ParseFloat(fields[7], 64); err != nil {
		return 0, 0, fmt.Errorf("iperf: %w", err)
	}
	if value, err = strconv.ParseFloat(fields[8], 64); err != nil {
		return 0, 0, fmt.Errorf("iperf: %w", err)
	}
	return value, bytes, nil
}

var nuttcpLine = regexp.MustCompile(`megabytes=([0-9.]+) real_seconds=([0-9.]+) rate_Mbps=([0-9.]+)`)

// nuttcp runs the client with the given flags.
func nuttcp(name string, flags ...string) program {
	return program{name: name, needs: "nuttcp", run: func(ctx context.Context, w *world, seconds float64) (float64,
		float64, error) {
		out, err := w.run(ctx,
			append(append([]string{"nuttcp", "-P", nuttcpPort, "-p", "5101", "-fparse", "-T", wholeSeconds(seconds)},
				flags...), farIP)...)
		if err != nil {
			return 0, 0, err
		}
		return parseNuttcp(out)
	}}
}

// parseNuttcp reads a line of `nuttcp -fparse`; its megabytes are of 2^20 and its megabits of 10^6.
func parseNuttcp(out []byte) (value, bytes float64, err error) {
	m := nuttcpLine.FindSubmatch(out)
	if m == nil {
		return 0, 0, fmt.Errorf("nuttcp: no figures in %q", lastLine(out))
	}
	megabytes, _ := strconv.ParseFloat(string(m[1]), 64) // the pattern lets only numbers through
	megabits, _ := strconv.ParseFloat(string(m[3]), 64)
	return megabits * 1e6, megabytes * (1 << 20), nil
}

var sockperfLine = regexp.MustCompile(
	`Valid Duration\] RunTime=([0-9.]+) sec; SentMessages=\d+; ReceivedMessages=(\d+)`)

// sockperf plays TCP ping-pong with 14 bytes, its smallest message. The figure is replies per
// second.
func sockperf(flags ...string) program {
	return program{name: "sockperf", needs: "sockperf",
		run: func(ctx context.Context, w *world, seconds float64) (float64, float64, error) {
			out, err := w.run(ctx,
				append([]string{"sockperf", "pp", "--tcp", "-i", farIP, "-p", sockperfPort, "-m", "14", "-t",
					wholeSeconds(seconds)}, flags...)...)
			if err != nil {
				return 0, 0, err
			}
			return parseSockperf(out)
		}}
}

func parseSockperf(out []byte) (value, bytes float64, err error) {
	m := sockperfLine.FindSubmatch(out)
	if m == nil {
		return 0, 0, fmt.Errorf("sockperf: no figures in %q", lastLine(out))
	}
	seconds, _ := strconv.ParseFloat(string(m[1]), 64) // the pattern lets only numbers through
	n, _ := strconv.ParseFloat(string(m[2]), 64)
	if seconds <= 0 {
		return 0, 0, fmt.Errorf("sockperf: measured %v s", seconds)
	}
	return n / seconds, 0, nil
}

// plain runs this program's own loop over package net on the near host, against its own server on
// the far host: the result of a program without optimisation.
func plain(self, what string) program {
	return program{name: "go-net", run: func(ctx context.Context, w *world, seconds float64) (float64, float64, error) {
		out, err := w.run(ctx, self, "-play", what, "-duration", fmt.Sprint(seconds))
		if err != nil {
			return 0, 0, err
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
		return v, 0, err
	}}
}

// wholeSeconds returns seconds for programs that do not accept fractions.
func wholeSeconds(s float64) string { return strconv.Itoa(max(1, int(s+0.5))) }

// answering waits until a TCP server on the far host takes connections.
func (w *world) answering(ctx context.Context, self, port string) error {
	_, err := w.run(ctx, self, "-play", "wait", "-port", port)
	return err
}

// await is the near half of answering.
func await(ctx context.Context, addr string) error {
	var d net.Dialer
	for {
		c, err := d.DialContext(ctx, "tcp", addr)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", addr, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// accuracy returns how close the achieved rate came to the requested one: 1 is exact, and too fast
// is as wrong as too slow.
func accuracy(r result) float64 { return 1 - math.Abs(r.Pacing.Achieved/r.Pacing.Target-1) }

// exactly returns a program that always reaches v.
func exactly(v float64) program {
	return program{name: "exact", run: func(context.Context, *world, float64) (float64, float64,
		error) {
		return v, 0, nil
	}}
}

// iperf3Paced returns how close iperf3 comes to a rate, by the bytes that its server received.
func iperf3Paced(name, rate string, flags ...string) program {
	target := map[string]float64{"10M": 10e6, "100M": 100e6, "1G": 1e9}[rate]
	return program{name: name, needs: "iperf3", run: func(ctx context.Context, w *world, seconds float64) (float64,
		float64, error) {
		out, err := w.run(ctx,
			append([]string{"iperf3", "-c", farIP, "-p", iperf3Port, "-J", "-t", wholeSeconds(seconds), "-b", rate},
				flags...)...)
		if err != nil {
			return 0, 0, err
		}
		var doc struct {
			End struct {
				Sum struct {
					Rate float64 `json:"bits_per_second"`
				} `json:"sum"`
				Received struct {
					Rate float64 `json:"bits_per_second"`
				} `json:"sum_received"`
			} `json:"end"`
		}
		if err := json.Unmarshal(out, &doc); err != nil {
			return 0, 0, fmt.Errorf("iperf3: %w", err)
		}
		achieved := max(doc.End.Sum.Rate, doc.End.Received.Rate)
		return 1 - math.Abs(achieved/target-1), 0, nil
	}}
}
