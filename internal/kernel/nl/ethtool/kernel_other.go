//go:build !linux

package ethtool

import "github.com/linerate/linerate/internal/kernel/nl"

func (kernel) rings(string) (rx, tx Ring, err error)            { return rx, tx, nl.ErrNotSupported }
func (kernel) coalesce(string) (map[string]uint32, error)       { return nil, nl.ErrNotSupported }
func (kernel) features(string) (map[string]Feature, error)      { return nil, nl.ErrNotSupported }
func (kernel) channels(string) (Channels, error)                { return Channels{}, nl.ErrNotSupported }
func (kernel) linkMode(string) (float64, string, error)         { return 0, "", nl.ErrNotSupported }
func (kernel) linkInfo(string) (LinkInfo, error)                { return LinkInfo{}, nl.ErrNotSupported }
func (kernel) pause(string) (Pause, error)                      { return Pause{}, nl.ErrNotSupported }
func (kernel) eee(string) (EEE, error)                          { return EEE{}, nl.ErrNotSupported }
func (kernel) fec(string) (FEC, error)                          { return FEC{}, nl.ErrNotSupported }
func (kernel) rss(string) (RSS, error)                          { return RSS{}, nl.ErrNotSupported }
func (kernel) privateFlags(string) (map[string]bool, error)     { return nil, nl.ErrNotSupported }
func (kernel) driver(string) (DriverInfo, error)                { return DriverInfo{}, nl.ErrNotSupported }
func (kernel) statistics(string) (map[string]uint64, error)     { return nil, nl.ErrNotSupported }
func (kernel) setFeature(string, string, bool) error            { return nl.ErrNotSupported }
func (kernel) setRing(string, string, uint32) error             { return nl.ErrNotSupported }
func (kernel) setChannel(string, string, uint32) error          { return nl.ErrNotSupported }
func (kernel) setCoalesce(string, string, uint32) error         { return nl.ErrNotSupported }
func (kernel) setPause(string, Pause) error                     { return nl.ErrNotSupported }
func (kernel) setEEE(string, bool) error                        { return nl.ErrNotSupported }
func (kernel) setPrivateFlag(string, string, bool) error        { return nl.ErrNotSupported }
func (kernel) rssKey(string) ([]byte, error)                    { return nil, nl.ErrNotSupported }
func (kernel) setRSSIndirection(string, []uint32) error         { return nl.ErrNotSupported }
func (kernel) setRSSKey(string, []byte) error                   { return nl.ErrNotSupported }
func (kernel) setRSSFunction(string, string) error              { return nl.ErrNotSupported }
func (kernel) hashFields(string, string) (string, error)        { return "", nl.ErrNotSupported }
func (kernel) setHashFields(string, string, string) error       { return nl.ErrNotSupported }
func (kernel) setFEC(string, bool, []string) error              { return nl.ErrNotSupported }
func (kernel) tunable(string, string) (uint32, error)           { return 0, nl.ErrNotSupported }
func (kernel) setTunable(string, string, uint32) error          { return nl.ErrNotSupported }
func (kernel) ringParameters(string) (map[string]uint32, error) { return nil, nl.ErrNotSupported }
func (kernel) setLinkMode(string, LinkMode) error               { return nl.ErrNotSupported }
func (kernel) linkModes(string) (LinkModes, error)              { return LinkModes{}, nl.ErrNotSupported }
func (kernel) permanentAddress(string) (string, error)          { return "", nl.ErrNotSupported }
func (kernel) wake(string) (Wake, error)                        { return Wake{}, nl.ErrNotSupported }
func (kernel) setWake(string, uint32) error                     { return nl.ErrNotSupported }
func (kernel) messageLevel(string) (uint32, error)              { return 0, nl.ErrNotSupported }
func (kernel) setMessageLevel(string, uint32) error             { return nl.ErrNotSupported }
func (kernel) module(string, byte, byte, int, int) ([]byte, error) {
	return nil, nl.ErrNotSupported
}
func (kernel) readStatistics(*StatisticsReader, string, bool) (bool, error) {
	return false, nl.ErrNotSupported
}
