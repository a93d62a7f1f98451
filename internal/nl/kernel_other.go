//go:build !linux

package nl

import "net/netip"

// kernel is the absent kernel side: dial never succeeds, so no other method is ever reached through a
// Client that Dial gave.
type kernel struct{}

func dial() (*kernel, error) { return nil, ErrNotSupported }

// The signatures are those of the Linux side, so that client.go is one file for all systems and a method that is
// missing on one of them does not compile.
func (*kernel) close() error                                     { return ErrNotSupported }
func (*kernel) links() ([]Link, error)                           { return nil, ErrNotSupported }
func (*kernel) linkByName(string) (Link, error)                  { return Link{}, ErrNotSupported }
func (*kernel) addresses() ([]Address, error)                    { return nil, ErrNotSupported }
func (*kernel) routes() ([]Route, error)                         { return nil, ErrNotSupported }
func (*kernel) routeTo(string) (Route, error)                    { return Route{}, ErrNotSupported }
func (*kernel) qdiscs() ([]Qdisc, error)                         { return nil, ErrNotSupported }
func (*kernel) neighbourTables() ([]NeighbourTable, error)       { return nil, ErrNotSupported }
func (*kernel) tcpMetrics() ([]netip.Addr, error)                { return nil, ErrNotSupported }
func (*kernel) forgetTCPMetrics(netip.Addr) error                { return ErrNotSupported }
func (*kernel) rings(string) (rx, tx Ring, err error)            { return rx, tx, ErrNotSupported }
func (*kernel) coalesce(string) (map[string]uint32, error)       { return nil, ErrNotSupported }
func (*kernel) features(string) (map[string]Feature, error)      { return nil, ErrNotSupported }
func (*kernel) channels(string) (Channels, error)                { return Channels{}, ErrNotSupported }
func (*kernel) linkMode(string) (float64, string, error)         { return 0, "", ErrNotSupported }
func (*kernel) linkInfo(string) (LinkInfo, error)                { return LinkInfo{}, ErrNotSupported }
func (*kernel) pause(string) (Pause, error)                      { return Pause{}, ErrNotSupported }
func (*kernel) eee(string) (EEE, error)                          { return EEE{}, ErrNotSupported }
func (*kernel) fec(string) (FEC, error)                          { return FEC{}, ErrNotSupported }
func (*kernel) rss(string) (RSS, error)                          { return RSS{}, ErrNotSupported }
func (*kernel) privateFlags(string) (map[string]bool, error)     { return nil, ErrNotSupported }
func (*kernel) driver(string) (DriverInfo, error)                { return DriverInfo{}, ErrNotSupported }
func (*kernel) statistics(string) (map[string]uint64, error)     { return nil, ErrNotSupported }
func (*kernel) setMTU(string, int) error                         { return ErrNotSupported }
func (*kernel) setTxQueueLen(string, int) error                  { return ErrNotSupported }
func (*kernel) setSizeLimit(string, SizeLimit, int) error        { return ErrNotSupported }
func (*kernel) setUp(string, bool) error                         { return ErrNotSupported }
func (*kernel) setMAC(string, string) error                      { return ErrNotSupported }
func (*kernel) setFeature(string, string, bool) error            { return ErrNotSupported }
func (*kernel) setRing(string, string, uint32) error             { return ErrNotSupported }
func (*kernel) setChannel(string, string, uint32) error          { return ErrNotSupported }
func (*kernel) setCoalesce(string, string, uint32) error         { return ErrNotSupported }
func (*kernel) setPause(string, Pause) error                     { return ErrNotSupported }
func (*kernel) setEEE(string, bool) error                        { return ErrNotSupported }
func (*kernel) setPrivateFlag(string, string, bool) error        { return ErrNotSupported }
func (*kernel) replaceRoute(Route) error                         { return ErrNotSupported }
func (*kernel) setRouteMetric(string, RouteMetric, int) error    { return ErrNotSupported }
func (*kernel) addRoute(Route) error                             { return ErrNotSupported }
func (*kernel) addAddress(string, string) error                  { return ErrNotSupported }
func (*kernel) addVeth(string, string, int) error                { return ErrNotSupported }
func (*kernel) addLink(string, string) error                     { return ErrNotSupported }
func (*kernel) moveToNetNS(string, int) error                    { return ErrNotSupported }
func (*kernel) setMaster(string, string) error                   { return ErrNotSupported }
func (*kernel) deleteLink(string) error                          { return ErrNotSupported }
func (*kernel) replaceTBF(string, TBF) error                     { return ErrNotSupported }
func (*kernel) replaceQdisc(string, string) error                { return ErrNotSupported }
func (*kernel) qdiscTree(string) ([]QdiscNode, error)            { return nil, ErrNotSupported }
func (*kernel) changeQdisc(string, QdiscNode) error              { return ErrNotSupported }
func (*kernel) newQdisc(string, QdiscNode) error                 { return ErrNotSupported }
func (*kernel) deleteRootQdisc(string) error                     { return ErrNotSupported }
func (*kernel) routeOf(string) (Route, error)                    { return Route{}, ErrNotSupported }
func (*kernel) setRouteCongestion(string, string) error          { return ErrNotSupported }
func (*kernel) rssKey(string) ([]byte, error)                    { return nil, ErrNotSupported }
func (*kernel) setRSSIndirection(string, []uint32) error         { return ErrNotSupported }
func (*kernel) setRSSKey(string, []byte) error                   { return ErrNotSupported }
func (*kernel) setRSSFunction(string, string) error              { return ErrNotSupported }
func (*kernel) hashFields(string, string) (string, error)        { return "", ErrNotSupported }
func (*kernel) setHashFields(string, string, string) error       { return ErrNotSupported }
func (*kernel) setFEC(string, bool, []string) error              { return ErrNotSupported }
func (*kernel) tunable(string, string) (uint32, error)           { return 0, ErrNotSupported }
func (*kernel) setTunable(string, string, uint32) error          { return ErrNotSupported }
func (*kernel) ringParameters(string) (map[string]uint32, error) { return nil, ErrNotSupported }
func (*kernel) setLinkMode(string, LinkMode) error               { return ErrNotSupported }
