// Package names holds the questions of a load: which names a resolver is asked for, in which order,
// and what the answers must say where that is known.
//
// # Model
//
// A [Set] holds queries packed once. A [Drawer] chooses the next one: those of a file in
// their order, those of a [Model] at random. A model has a population of names of which few are
// popular (Zipf's law), and beside it names that no query asked for before, which no cache can
// answer. The share of the population is therefore the hit ratio of a cache that holds all of it.
//
// A zone that answers a model has a wildcard below live.DOMAIN and nothing below gone.DOMAIN.
//
// # Units
//
// Ratios from 0 to 1.
//
// # Sources
//
// Lists: the format of dnsperf, a name and a type a line. Logs: the query logs of BIND 9 (category
// queries), Unbound (log-queries) and dnsmasq (log-queries). Captures: pcap and pcapng
// (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng). Popularity of names: Jung, Sit,
// Balakrishnan, Morris, DNS performance and the effectiveness of caching (2002), who measured
// exponents near 1.
//
// # Limits
//
// Five million questions a set. Class IN. Of a capture only whole queries over UDP to port 53.
package names
