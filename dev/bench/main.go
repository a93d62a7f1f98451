package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/linerate/linerate/internal/wire"
)

func main() {
	// SIGTERM as well, so that a bench that another program ends removes its namespaces.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	linerate, out   string
	rounds          int
	duration        float64
	only            string
	nearCPU, farCPU string
	play, port      string
	patience        time.Duration
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&o.linerate, "linerate", "bin/linerate", "the program under test")
	f.StringVar(&o.out, "out", "bench/results.json", "file for the results")
	f.IntVar(&o.rounds, "rounds", 7, "rounds of every row; an interval needs six")
	f.Float64Var(&o.duration, "duration", 1, "length of one measurement, in seconds")
	f.StringVar(&o.only, "only", "", "run only rows whose name matches this regular expression")
	f.StringVar(&o.nearCPU, "near-cpu", "0", "CPU of all programs on the near host")
	f.StringVar(&o.farCPU, "far-cpu", "1", "CPU of all programs on the far host")
	f.DurationVar(&o.patience, "patience", 0, "before each round, wait this long at most until other programs are idle")
	f.StringVar(&o.play, "play", "", "internal: the part of this program on one of the hosts")
	f.StringVar(&o.port, "port", plainPort, "internal: the port of that part")
	if err := f.Parse(args); err != nil {
		return err
	}
	if o.play != "" {
		return playPart(ctx, o, out)
	}
	if os.Geteuid() != 0 {
		return errors.New("make network namespaces: root is required; try sudo make bench")
	}
	return compare(ctx, o, out, progress)
}

// playPart runs this program as a peer on one of the hosts.
func playPart(ctx context.Context, o options, out io.Writer) error {
	d := time.Duration(o.duration * float64(time.Second))
	switch o.play {
	case "serve":
		return playServer(ctx, ":"+o.port)
	case "wait":
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		return await(ctx, farIP+":"+o.port)
	case "rr", "crr":
		return playTransactions(ctx, farIP+":"+o.port, o.play == "crr", d, out)
	}
	return fmt.Errorf("play %q: unknown part", o.play)
}

// compare makes the world, starts the servers, plays the rows and writes the results.
func compare(ctx context.Context, o options, out, progress io.Writer) error {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	exe, err := filepath.Abs(o.linerate)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	w, err := newWorld(ctx, o.nearCPU, o.farCPU)
	if err != nil {
		return err
	}
	defer w.close()
	w.patience = o.patience
	key, missing, err := servers(ctx, w, exe, self)
	if err != nil {
		return err
	}
	var results struct {
		Rows []outcome `json:"rows"`
	}
	var failed error // the rows before it are measured: minutes of a quiet machine are not thrown away
	for _, r := range rows(exe, key, self) {
		if !only.MatchString(r.test) {
			continue
		}
		fmt.Fprintf(progress, "%s …\n", r.test)
		res, err := r.play(ctx, w, o.rounds, o.duration, missing)
		if err != nil {
			failed = fmt.Errorf("%s: %w", r.test, err)
			break
		}
		results.Rows = append(results.Rows, res)
	}
	if err := print(out, results.Rows); err != nil {
		return err
	}
	b, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.out, append(b, '\n'), 0o644); err != nil || failed != nil {
		return errors.Join(failed, err)
	}
	if missed := slices.IndexFunc(results.Rows, func(r outcome) bool {
		return r.Rounds == 0 || r.BestPeer != "" && !r.disturbed() && !r.met()
	}); missed >= 0 {
		return fmt.Errorf("a goal is not met, first in row %q", results.Rows[missed].Test)
	}
	if disturbed := slices.IndexFunc(results.Rows, outcome.disturbed); disturbed >= 0 {
		return fmt.Errorf("other programs disturbed the bench, first in row %q: repeat it", results.Rows[disturbed].Test)
	}
	return nil
}

// servers starts the far end of every program. It returns linerate's key and the programs that are
// missing, with the reason.
func servers(ctx context.Context, w *world, exe, self string) (key string, missing map[string]string, err error) {
	key = wire.NewKey().String()
	missing = map[string]string{}
	type server struct {
		needs, port string
		args        []string
	}
	for _, s := range []server{
		{"", ourPort, []string{exe, "serve", "--listen", farIP + ":" + ourPort, "--key", key}},
		{"", plainPort, []string{self, "-play", "serve"}},
		{"iperf3", iperf3Port, []string{"iperf3", "-s", "-p", iperf3Port}},
		{"iperf", iperf2Port, []string{"iperf", "-s", "-p", iperf2Port}},
		{"nuttcp", nuttcpPort, []string{"nuttcp", "-S", "--nofork", "-P", nuttcpPort}},
		{"sockperf", sockperfPort, []string{"sockperf", "sr", "--tcp", "-i", farIP, "-p", sockperfPort}},
	} {
		if s.needs != "" {
			if _, err := exec.LookPath(s.needs); err != nil {
				missing[s.needs] = "not installed"
				continue
			}
		}
		if err := w.serve(ctx, s.args...); err != nil {
			return "", nil, err
		}
		if err := w.answering(ctx, self, s.port); err != nil {
			return "", nil, fmt.Errorf("%s does not answer: %w", s.args[0], err)
		}
	}
	return key, missing, nil
}

// print shows the table.
func print(out io.Writer, rows []outcome) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "test\tours\tbest peer\t\tratio\t95 %\tgoal\t")
	for _, r := range rows {
		name := r.Test
		if r.Congestion != "" {
			name += ", " + r.Congestion
		}
		fmt.Fprintf(t, "%s\t%.4g %s\t%.4g\t%s\t%.2f\t%.2f…%.2f\t%.2f %s\t\n",
			name, r.Ours, r.Unit, r.Peers[r.BestPeer], r.BestPeer, r.Ratio, r.Low, r.High, r.Goal, r.verdict())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Ways != "" {
			fmt.Fprintf(out, "%s: %s\n", r.Test, r.Ways)
		}
		for _, s := range r.Skipped {
			fmt.Fprintf(out, "left out of %s: %s\n", r.Test, s)
		}
	}
	return nil
}
