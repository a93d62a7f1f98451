package cli

import (
	"context"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/lab/scenario"
)

// knownWords are the places of a command line that take one of a few words: the argument of a
// command, and a flag of every command or of one. TestCompletionsAreInTheHelp holds them to what
// the commands say of themselves. It is one text, because the program has to be small, and a map
// of functions takes twenty times the space.
const knownWords = `
lab up: pair router
calc bus: isa eisa pci pci-x pcie usb
measure: ssh:// iperf3:// iperf2:// ttcp:// nuttcp:// sockperf:// stamp://
diagnose: ssh:// icmp:// iperf3:// iperf2:// ttcp:// nuttcp:// sockperf:// stamp://
tune: ssh:// disk:
--progress: auto lines all off
measure --test: stream rr crr udp ping mtu load burst
profile --test: stream udp rr
disk --test: sequential-read random-read sequential-write random-write
disk --way: auto direct dropped group pinned larger buffered
disk --engine: psync io_uring
disk --sync: none fdatasync dsync
--send: copy sendfile splice
--receive: copy truncate
--batch: gso mmsg single
set --allow: d0 d1 d2 d3 d4
tune --allow: d0 d1 d2 d3
apply --allow: d0 d1 d2 d3
apply --goal: throughput latency packets
tune --goal: throughput latency packets operations
export --side: near far
export --format: ansible tuned shell nixos
check-advice --os: linux freebsd netbsd illumos solaris windows
diagnose --fail-on: info notice warning critical
resolver diagnose --fail-on: info notice warning critical
--level: mild plain gross
--ground: namespace guest
recover --init: systemd sysvinit openrc
measure --format: csv prometheus influx
report --format: csv prometheus influx
history --format: csv prometheus influx
top --format: csv prometheus influx
plan --os: linux freebsd illumos solaris windows
--role: bulk web router firewall latency virtual nameserver nfs
serve --accept: iperf3 iperf2 ttcp nuttcp sockperf stamp
`

// completes reports whether a command line is a question of a shell's completion.
func completes(args []string) bool {
	return slices.Contains(args, cobra.ShellCompRequestCmd) || slices.Contains(args, cobra.ShellCompNoDescRequestCmd)
}

// complete makes the shell complete the arguments and flags of a command, and of those below it. A
// command without arguments offers no files.
func (a *app) complete(c *cobra.Command) {
	path := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), c.Root().Name()), " ")
	if path == "help" {
		commands := c.ValidArgsFunction
		c.ValidArgsFunction = func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			words, directive := commands(c, args, typed)
			for _, t := range topics() {
				if len(args) == 0 && strings.HasPrefix(t.name, typed) {
					words = append(words, t.name+"\t"+t.title)
				}
			}
			return words, directive
		}
	} else if takes := parameters(c.Use); len(takes) > 0 {
		c.ValidArgsFunction = func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) >= len(takes) && !takes[len(takes)-1].many {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			words := a.wordsFor(path, typed)
			if path == "peers revoke" { // of the file that the line names
				words = a.peerNames(c.Flag("file").Value.String())
			}
			return offered(words, args, typed)
		}
	} else if c.ValidArgsFunction == nil && !c.HasSubCommands() {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	flag := func(f *pflag.Flag) {
		// The error is one of a flag that has a function already, as a group's flag has.
		_ = c.RegisterFlagCompletionFunc(f.Name,
			func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
				before := typed[:strings.LastIndexByte(typed, ',')+1] // of a list
				words := a.wordsFor(path+" --"+f.Name, typed[len(before):])
				for i, word := range words {
					words[i] = before + word
				}
				return offered(words, nil, typed)
			})
	}
	c.Flags().VisitAll(flag)
	c.PersistentFlags().VisitAll(flag)
	for _, sub := range c.Commands() {
		a.complete(sub)
	}
}

// offered returns the words that begin with what is typed and are not given yet. Without such a
// word, files complete it: report takes a file in place of a run. No blank follows an unfinished
// word.
func offered(words, given []string, typed string) ([]string, cobra.ShellCompDirective) {
	words = slices.DeleteFunc(words, func(word string) bool {
		name, _, _ := strings.Cut(word, "\t")
		return !strings.HasPrefix(word, typed) || slices.Contains(given, name)
	})
	if len(words) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	if !slices.ContainsFunc(words, func(word string) bool { return !unfinished(word) }) {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	return words, directive
}

// unfinished reports whether more belongs to a word: it is a kind of knob, a part of a knob's name,
// a knob without its value, or a scheme.
func unfinished(word string) bool {
	name, _, _ := strings.Cut(word, "\t")
	return strings.IndexByte(":/.=", name[len(name)-1]) >= 0
}

// wordsFor returns the words of a place, of which some may not begin with what is typed. A
// description may follow a word after a tab. What this host does not show is not offered: an error
// has no place in a completion.
func (a *app) wordsFor(place, typed string) []string {
	var words []string
	_, flag, _ := strings.Cut(place, "--")
	switch place {
	case "set":
		words = knobsOfHost(typed)
		for i, word := range words {
			if name, title, titled := strings.Cut(word, "\t"); titled {
				words[i] = name + "=\t" + title
			}
		}
		return words
	case "knobs", "tune --knobs", "history --knob":
		return knobsOfHost(typed)
	case "undo":
		return a.changesIn(journal.Trial, journal.Committed, journal.Persisted)
	case "confirm":
		return a.changesIn(journal.Trial)
	case "persist":
		return a.changesIn(journal.Committed)
	case "export":
		return a.changesIn(journal.Committed, journal.Persisted)
	case "inspect":
		return interfaceNames()
	case "measure compare":
		return a.measurementNames()
	case "lab run":
		all, _ := scenario.List()
		words = []string{"all"}
		for _, s := range all {
			words = append(words, s.Name+"\t"+s.Title)
		}
		return words
	case "diagnose --explain":
		for _, e := range evidence.Registry() {
			words = append(words, string(e.Code)+"\t"+e.Title)
		}
		return words
	}
	switch flag {
	case "run":
		return a.runNames()
	case "baseline":
		return a.measurementNames()
	case "interface":
		return interfaceNames()
	case "bind":
		words = interfaceNames()
		all, _ := net.InterfaceAddrs()
		for _, one := range all {
			if of, ok := one.(*net.IPNet); ok {
				words = append(words, of.IP.String())
			}
		}
		return words
	case "cc":
		text, _ := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
		return strings.Fields(string(text))
	case "":
		if place == "report" {
			return append(a.runNames(), a.measurementNames()...)
		}
	}
	for line := range strings.Lines(knownWords) {
		of, known, _ := strings.Cut(line, ": ")
		if of == place || flag != "" && of == "--"+flag {
			return strings.Fields(known)
		}
	}
	return nil
}

// changesIn returns the ids of the changes in some states, newest first, with knob and values.
func (a *app) changesIn(states ...journal.State) []string {
	all, _ := a.history()
	var words []string
	for i := len(all) - 1; i >= 0; i-- {
		if c := all[i]; slices.Contains(states, c.State) {
			words = append(words, c.ID+"\t"+string(c.Knob+" "+knob.ID(c.From)+" → "+knob.ID(c.To))+", "+string(c.State))
		}
	}
	return words
}

// runNames returns the names of the stored tunes, newest first.
func (a *app) runNames() []string {
	store, _, err := a.runStore()
	if err != nil {
		return nil
	}
	return storedNames(store)
}

// measurementNames returns the names of the stored measurements, newest first.
func (a *app) measurementNames() []string {
	store, _, err := a.measurementStore()
	if err != nil {
		return nil
	}
	return storedNames(store)
}

// storedNames returns the words and the ids that a store knows.
func storedNames(store runs.Store) []string {
	all, err := store.List()
	switch {
	case err != nil || len(all) == 0:
		return nil
	case len(all) == 1:
		return []string{runs.Last, all[0]}
	}
	return append([]string{runs.Last, runs.Previous}, all...)
}

// interfaceNames returns the interfaces of this host.
func interfaceNames() []string {
	all, _ := net.Interfaces()
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names
}

// peerNames returns the names of the peers in a file, each with what it may do.
func (a *app) peerNames(file string) []string {
	f, err := a.openPeers(file)
	if err != nil {
		return nil
	}
	peers, _ := f.Read()
	words := make([]string, len(peers))
	for i := range peers {
		words[i] = peers[i].Name + "\tmeasures"
		if peers[i].Tuning != nil {
			words[i] = peers[i].Name + "\ttunes: " + peers[i].Tuning.String()
		}
	}
	return words
}

// knobsOfHost returns the knobs of this host that begin with what is typed, a part of the name at a
// time: a host with 400 interfaces has 50 000 knobs. First come the kinds, then the interfaces (or
// CPUs, disks, routes, …), then the knobs of one, with their titles.
func knobsOfHost(typed string) []string {
	kind, _, chosen := strings.Cut(typed, ":")
	ofKind := func(d knob.Definition) bool { return strings.HasPrefix(d.Pattern.Kind(), typed) }
	if !chosen && !slices.ContainsFunc(knob.Catalogue().All(), ofKind) {
		words := knobsOfHost(knob.WithKind(typed))
		for i, word := range words {
			words[i] = strings.TrimPrefix(word, knob.KindSysctl+":")
		}
		return words
	}
	host, asked, known := live.New(), make(map[string]bool), make(map[string][]string)
	titles := make(map[string]string) // by name; a part of a name has none
	for _, d := range knob.Catalogue().All() {
		name := string(d.Pattern)
		star := strings.IndexByte(name, '*')
		switch {
		case !chosen:
			titles[d.Pattern.Kind()+":"] = ""
		case d.Pattern.Kind() != kind:
		case star < 0:
			if strings.HasPrefix(name, typed) && exists(d.Pattern) {
				titles[name] = d.Title
			}
		case len(typed) < star:
			titles[name[:star]] = ""
		case strings.HasPrefix(typed, name[:star]):
			rest := name[strings.LastIndexByte(name, '*')+1:]
			if rest == "" || asked[kind] && len(typed) == star {
				continue // a driver chooses these names; and all knobs of a kind have the same subjects
			}
			asked[kind] = true
			pattern := strings.TrimSuffix(name, rest)
			if _, ok := known[pattern]; !ok {
				known[pattern] = subjects(host, d, rest, typed)
			}
			for _, subject := range known[pattern] {
				if !strings.HasPrefix(subject, typed) && !strings.HasPrefix(typed, subject) {
					continue // before 400 interfaces times 80 knobs become strings
				}
				part := len(subject) // where the name goes on
				if at := strings.IndexByte(subject[min(len(typed), len(subject)):], '/'); at >= 0 && kind != knob.KindSysctl {
					part = len(typed) + at
				}
				switch whole := subject + rest; {
				case part >= len(typed):
					titles[whole[:part+1]] = ""
				case strings.HasPrefix(whole, typed):
					titles[whole] = d.Title
				}
			}
		}
	}
	words := slices.Sorted(maps.Keys(titles))
	for i, word := range words {
		if title := titles[word]; title != "" {
			words[i] = word + "\t" + title
		}
	}
	return words
}

// exists reports whether this kernel has a sysctl. Knobs of other kinds without a star are those of
// modules, which may be loaded later.
func exists(id knob.ID) bool {
	if id.Kind() != knob.KindSysctl {
		return true
	}
	_, err := os.Stat(filepath.Join("/proc/sys", filepath.Join(id.Path()...)))
	return err == nil
}

// subjects returns the instances of a definition on this host without the rest of their names, such
// as ethtool:eth0. Once an interface is typed it is the only one, and the host with its many others
// need not be asked.
func subjects(host *live.Host, d knob.Definition, rest, typed string) []string {
	kind := d.Pattern.Kind() + ":"
	if link, queue, chosen := strings.Cut(strings.TrimPrefix(typed, kind), "/"); chosen {
		switch d.Pattern.Kind() {
		case knob.KindLink, knob.KindQdisc, knob.KindEthtool:
			return []string{kind + link}
		case knob.KindQueue:
			queue, _, _ = strings.Cut(queue, "-")
			_, direction, _ := strings.Cut(d.Pattern.Subject(), "/")
			direction = strings.TrimSuffix(direction, "*")
			entries, _ := os.ReadDir(filepath.Join("/sys/class/net", filepath.Base(link), "queues"))
			var all []string
			for _, e := range entries {
				if strings.HasPrefix(e.Name(), direction) && strings.HasPrefix(e.Name(), queue) {
					all = append(all, kind+link+"/"+e.Name())
				}
			}
			return all
		}
	}
	ids, _ := host.Instances(context.Background(), d)
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = strings.TrimSuffix(string(id), rest)
	}
	return all
}
