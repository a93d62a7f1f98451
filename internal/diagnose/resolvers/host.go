package resolvers

import (
	"fmt"
	"strings"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/resolver/server"
)

const (
	// ranShare is how much a thread must have run to be the limit: on a CPU that other programs share
	// a thread that is always ready gets half of it, and less when several share it.
	ranShare = 0.25
	// lostShare of the queries is one in a thousand, as for other UDP sockets.
	lostShare, fewDrops = 0.001, 10
	// tooSlowShare is a loss that bursts do not explain.
	tooSlowShare = 0.10
)

// workers returns how many threads answer queries: as the server says, and otherwise those that did
// most of the work.
func (s seen) workers() (n int, source string, ok bool) {
	if w, ok := s.Statistics.Get(server.Workers); ok && w >= 1 {
		return int(w), s.Statistics.Source(server.Workers), true
	}
	if s.Host == nil {
		return 0, "", false
	}
	named := 0
	for _, t := range s.Host.Threads {
		// The threads of named with sockets: isc-net-0000, since 9.16.
		if strings.HasPrefix(t.Name, "isc-net-") {
			named++
		}
	}
	if s.Statistics.Kind == server.BIND && named > 0 {
		return max(named/threadsPerWorker(named, s.Host.CPUs), 1), "threads isc-net-*", true
	}
	return 0, "", false
}

// threadsPerWorker is 2 for named 9.16 and 9.18, which start a second set of network threads.
func threadsPerWorker(named, cpus int) int {
	if named >= 2*cpus || named == 2 {
		return 2
	}
	return 1
}

// singleWorker finds a server whose threads have no time left while it could have more of them.
func singleWorker(s seen) *evidence.Finding {
	t, ran, wanted, ok := s.busy()
	n, source, known := s.workers()
	if !ok || !known || s.queries < fewQueries || wanted < evidence.FullProcessor || ran < ranShare || n >= s.Host.CPUs {
		return nil
	}
	f := &evidence.Finding{Code: evidence.ResolverSingleWorker, Severity: evidence.Warning,
		Title: fmt.Sprintf("The busiest thread (%s) had no time left, and the server uses %d of %d CPUs.", t.Name, n,
			s.Host.CPUs),
		Evidence: append(s.load(), number("workers", float64(n), "workers", source),
			number("CPUs that it may use", float64(s.Host.CPUs), "CPUs", "/proc/PID/status, Cpus_allowed_list"),
			number("busiest thread ran", ran, "ratio", "/proc/PID/task/TID/schedstat"),
			number("busiest thread ran or waited for a CPU", wanted, "ratio", "/proc/PID/task/TID/schedstat")),
		Confidence: evidence.Combine(0.75, evidence.When(wanted >= 0.95, 0.4), evidence.When(s.drops() > 0, 0.3))}
	if len(s.Host.Threads) > n {
		next := s.Host.Threads[n]
		f.Evidence = append(f.Evidence, number("busiest thread behind the workers, "+next.Name,
			part(next.RunSeconds, s.Host.Seconds), "ratio", "/proc/PID/task/TID/schedstat"))
	}
	f.Rejected = append(f.Rejected, s.notUpstream()...)
	f.Rejected = append(f.Rejected, s.notCache()...)
	if ran < evidence.FullProcessor {
		f.Rejected = append(f.Rejected, fmt.Sprintf("Not idle time: the thread waited for its CPU for the other %s, "+
			"which other programs used.", evidence.Percent(wanted-ran)))
	}
	f.Remedy.Text = map[server.Kind]string{
		server.BIND: fmt.Sprintf("Start named with -n %d, or without -n: it then has a worker for each CPU.",
			s.Host.CPUs),
		server.Unbound: fmt.Sprintf("Set num-threads: %d, so-reuseport: yes, and the slabs to a power of two near it.",
			s.Host.CPUs),
		server.Knot: fmt.Sprintf("Start %d processes (systemctl enable --now kresd@1 kresd@2 …): they share the cache "+
			"and the port.", s.Host.CPUs),
		server.PowerDNS: fmt.Sprintf("Set threads=%d and reuseport=yes, with pdns-distributes-queries=no.", s.Host.CPUs),
		server.Dnsmasq: "dnsmasq has one thread. Put a resolver with several in front of it, or in its place (Unbound, " +
			"Knot Resolver).",
	}[s.Statistics.Kind]
	return f
}

// udpDrops finds queries that the server's own sockets lost.
func udpDrops(s seen) *evidence.Finding {
	lost := s.drops()
	share := part(lost, lost+s.queries)
	if lost < fewDrops || share < lostShare {
		return nil
	}
	worst := s.Host.Sockets[0]
	for _, k := range s.Host.Sockets {
		if k.Drops > worst.Drops {
			worst = k
		}
	}
	f := &evidence.Finding{Code: evidence.ResolverUDPDrops, Severity: evidence.Warning,
		Title: fmt.Sprintf("%s of %s queries were lost at the server's UDP sockets, whose buffers were full.",
			evidence.Count(lost), evidence.Count(lost+s.queries)),
		Evidence: append(s.load(), number("queries lost at the sockets", lost, "queries", "/proc/net/udp, drops"),
			number("lost share", share, "ratio", "lost / (lost + queries)"),
			number("lost at "+worst.Local.String(), float64(worst.Drops), "queries", "/proc/net/udp, drops")),
		Confidence: evidence.Combine(0.8, evidence.When(share >= 0.01, 0.4))}
	if worst.LimitBytes > 0 {
		f.Evidence = append(f.Evidence, number("receive buffer", float64(worst.LimitBytes), "bytes", "SK_MEMINFO_RCVBUF"))
	}
	f.Rejected = append(f.Rejected, s.notWorker()...)
	f.Rejected = append(f.Rejected, s.notPlaces()...)
	buffer := map[server.Kind]string{
		server.BIND:    "udp-receive-buffer in named.conf",
		server.Unbound: "so-rcvbuf: 4m in unbound.conf",
	}[s.Statistics.Kind]
	if buffer == "" {
		buffer = "net.core.rmem_default, as this server does not set its buffer"
	}
	f.Remedy.Text = fmt.Sprintf("A larger buffer absorbs bursts: %s, within net.core.rmem_max.", buffer)
	if share >= tooSlowShare {
		f.Remedy.Text += fmt.Sprintf(" With %s lost, bursts alone are unlikely: give the server more workers too.",
			evidence.Percent(share))
	}
	return f
}

// tcpBound finds a server whose clients must use TCP, or whose places for TCP are taken.
func tcpBound(s seen) *evidence.Finding {
	st := s.Statistics
	limit, okLimit := st.Get(server.TCPLimit)
	if n, ok := st.Get(server.Workers); ok && st.Kind == server.Unbound {
		limit *= n // incoming-num-tcp is of each thread
	}
	peak := max(st.Of(server.TCPClients), st.Of(server.TCPClientsMost))
	waiting, unaccepted := 0.0, 0.0
	if s.Host != nil {
		peak, waiting = max(peak, float64(s.Host.Connections)), float64(s.Host.Waiting)
		if waiting > 0 { // the counter is of all listeners, and this one's queue is not empty
			unaccepted = float64(s.Host.AcceptDrops)
		}
	}
	refused := st.Of(server.TCPRefused)
	tcp := part(st.Of(server.QueriesTCP), s.queries)
	again := part(st.Of(server.UpstreamTruncated), st.Of(server.Upstream))
	f := &evidence.Finding{Code: evidence.ResolverTCPBound, Severity: evidence.Warning, Evidence: s.load()}
	switch {
	case refused >= 1, okLimit && limit > 0 && peak >= limit && (waiting > 0 || tcp > 0 || s.queries < fewQueries):
		f.Title = fmt.Sprintf("The server's %s places for TCP connections were all taken.", evidence.Count(limit))
		f.Confidence = evidence.Combine(0.75, evidence.When(waiting > 0, 0.5), evidence.When(refused > 0, 0.6),
			evidence.When(unaccepted > 0, 0.5))
		f.Evidence = append(f.Evidence, number("connections", peak, "connections", "the server, /proc/net/tcp"),
			number("places", limit, "connections", st.Source(server.TCPLimit)))
		if refused > 0 {
			f.Evidence = append(f.Evidence, s.row("connections refused", server.TCPRefused, "connections"))
		}
		f.Remedy.Text = "More places: " + map[server.Kind]string{server.BIND: "tcp-clients in named.conf",
			server.Unbound:  "incoming-num-tcp in unbound.conf",
			server.PowerDNS: "max-tcp-clients, and max-tcp-per-client"}[st.Kind] +
			"; and shorter idle times, so that clients that keep connections open without queries lose them."
	case unaccepted >= fewDrops:
		f.Title = fmt.Sprintf("The kernel refused %s TCP connections, and %s wait for the server to accept them.",
			evidence.Count(unaccepted), evidence.Count(waiting))
		f.Confidence = 0.6
		f.Remedy.Text = "Look why the server accepts too slowly: a thread without time, or places that are taken. A longer " +
			"queue (tcp-listen-queue in named.conf, net.core.somaxconn) covers bursts alone."
	case again >= tcpShare && st.Of(server.UpstreamTruncated) >= fewDrops:
		f.Title = fmt.Sprintf("Other servers truncated their answers, and the server asked again over TCP for %s of its "+
			"queries.", evidence.Percent(again))
		f.Confidence = 0.8
		f.Evidence = append(f.Evidence, s.row("queries over TCP, for truncated answers", server.UpstreamTruncated, "queries"),
			s.row("queries to other servers", server.Upstream, "queries"))
		f.Remedy.Text = "Allow larger answers over UDP (edns-udp-size or edns-buffer-size: 1232, no less), and look " +
			"whether one upstream server truncates everything, as some do to slow clients down."
	case tcp >= tcpShare && s.queries >= fewQueries:
		f.Severity = evidence.Notice
		f.Title = fmt.Sprintf("%s of the queries came over TCP, which costs a connection each.", evidence.Percent(tcp))
		f.Confidence = 0.6
		f.Remedy.Text = "Look why clients use TCP: truncated answers (max-udp-size too small, large answers), or clients " +
			"that always do."
	default:
		return nil
	}
	if n, ok := st.Get(server.QueriesTCP); ok {
		f.Evidence = append(f.Evidence, number("queries over TCP", n, "queries", st.Source(server.QueriesTCP)))
	}
	if waiting > 0 {
		f.Evidence = append(f.Evidence, number("connections that wait to be accepted", waiting, "connections",
			"/proc/net/tcp"))
	}
	if unaccepted > 0 {
		f.Evidence = append(f.Evidence, number("connections refused by listeners of this host", unaccepted, "connections",
			"/proc/net/netstat, ListenDrops"))
	}
	f.Rejected = append(s.notWorker(), s.notDrops()...)
	return f
}

// tcpShare of the queries over TCP is far above that of ordinary clients, of which one or two per
// cent use it.
const tcpShare = 0.2

// logCost finds a server that writes a line for each query.
func logCost(s seen) *evidence.Finding {
	on := s.Statistics.Of(server.QueryLog) > 0
	_, known := s.Statistics.Get(server.QueryLog)
	writes, bytes := 0.0, 0.0
	if s.Host != nil && s.Host.Writes != nil {
		writes, bytes = float64(*s.Host.Writes), float64(*s.Host.WrittenBytes)
	}
	// A query over TCP is answered by a write of its own.
	each := part(writes-s.Statistics.Of(server.QueriesTCP), s.queries)
	if !on && (known || each < logEach || part(bytes, s.queries) < logBytes) || s.queries < fewQueries {
		return nil
	}
	f := &evidence.Finding{Code: evidence.ResolverLogCost, Severity: evidence.Notice, Confidence: 0.5,
		Title: "The server logs each query.", Evidence: s.load()}
	if on {
		f.Evidence = append(f.Evidence, s.row("query log", server.QueryLog, ""))
	}
	if each >= logEach {
		f.Severity = evidence.Warning
		f.Confidence = evidence.Combine(0.6, evidence.When(on, 0.6))
		f.Title = fmt.Sprintf("The server writes %.1f times for each query, %s each.", each,
			evidence.Bytes(part(bytes, writes)))
		f.Evidence = append(f.Evidence, number("writes for each query", each, "writes", "/proc/PID/io, syscw"),
			number("written", bytes, "bytes", "/proc/PID/io, wchar"))
	}
	f.Rejected = append(s.notDrops(), s.notCache()...)
	f.Remedy.Text = "Switch the query log off (" + map[server.Kind]string{server.BIND: "rndc querylog off",
		server.Unbound: "log-queries: no, log-replies: no, verbosity: 1", server.PowerDNS: "quiet=yes",
		server.Knot: "log_level('notice')", server.Dnsmasq: "without log-queries"}[s.Statistics.Kind] +
		"), or take it from dnstap, which does not hold a worker."
	return f
}

// A line of a query log is a hundred octets, and a server without one writes a few times a second.
const logEach, logBytes = 0.5, 30
