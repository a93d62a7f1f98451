//go:build !linux

package nl

// kernel replaces the kernel side on other systems. dial always fails, so no Client reaches the
// other methods.
type kernel struct{}

func dial() (*kernel, error) { return nil, ErrNotSupported }

// The signatures are those of the Linux side, so that client.go serves all systems and a method
// missing on one of them does not compile.
func (*kernel) close() error                                        { return ErrNotSupported }
func (*kernel) links() ([]Link, error)                              { return nil, ErrNotSupported }
func (*kernel) linkByName(string) (Link, error)                     { return Link{}, ErrNotSupported }
func (*kernel) ownName(string) (string, error)                      { return "", ErrNotSupported }
func (*kernel) addresses() ([]Address, error)                       { return nil, ErrNotSupported }
func (*kernel) qdiscs() ([]Qdisc, error)                            { return nil, ErrNotSupported }
func (*kernel) setMTU(string, int) error                            { return ErrNotSupported }
func (*kernel) setTxQueueLen(string, int) error                     { return ErrNotSupported }
func (*kernel) setSizeLimit(string, SizeLimit, int) error           { return ErrNotSupported }
func (*kernel) setUp(string, bool) error                            { return ErrNotSupported }
func (*kernel) setMAC(string, string) error                         { return ErrNotSupported }
func (*kernel) addAddress(string, string) error                     { return ErrNotSupported }
func (*kernel) addVeth(string, string, int) error                   { return ErrNotSupported }
func (*kernel) addLink(string, string) error                        { return ErrNotSupported }
func (*kernel) moveToNetNS(string, int) error                       { return ErrNotSupported }
func (*kernel) setMaster(string, string) error                      { return ErrNotSupported }
func (*kernel) deleteLink(string) error                             { return ErrNotSupported }
func (*kernel) replaceTBF(string, TBF) error                        { return ErrNotSupported }
func (*kernel) replaceQdisc(string, string) error                   { return ErrNotSupported }
func (*kernel) qdiscTree(string) ([]QdiscNode, error)               { return nil, ErrNotSupported }
func (*kernel) changeQdisc(string, QdiscNode) error                 { return ErrNotSupported }
func (*kernel) newQdisc(string, QdiscNode) error                    { return ErrNotSupported }
func (*kernel) deleteRootQdisc(string) error                        { return ErrNotSupported }
func (*kernel) linkCounters([]LinkCounters) ([]LinkCounters, error) { return nil, ErrNotSupported }
func (*kernel) qdiscCounters([]QdiscCounters) ([]QdiscCounters, error) {
	return nil, ErrNotSupported
}
