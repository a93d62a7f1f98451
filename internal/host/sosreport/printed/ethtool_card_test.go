package printed

import (
	"testing"

	"github.com/linerate/linerate/internal/host"
)

// TestParseFEC has what ice, fbnic, mlx5 (a DGX Spark) and an FPGA card of Silicom printed in mails
// to netdev, with both titles of the line.
func TestParseFEC(t *testing.T) {
	for text, want := range map[string]*host.FEC{
		"FEC parameters for ens21f0np0:\nSupported/Configured FEC encodings: Auto RS BaseR\nActive FEC encoding: RS\n": {
			Auto: true, Modes: []string{"baser", "rs"}, Active: "rs"},
		"FEC parameters for eth0:\nSupported/Configured FEC encodings: RS\nActive FEC encoding: RS\n": {
			Modes: []string{"rs"}, Active: "rs"},
		"FEC parameters for enp1s0f1np1:\nSupported/Configured FEC encodings: Auto\nActive FEC encoding: RS\n": {
			Auto: true, Active: "rs"},
		"FEC parameters for eth1:\nConfigured FEC encodings: Auto Off RS BaseR\nActive FEC encoding: None\n": {
			Auto: true, Modes: []string{"baser", "off", "rs"}},
		"FEC parameters for eni8np1:\nSupported/Configured FEC encodings: None\nActive FEC encoding: None\n" +
			"Statistics:\n  corrected_blocks: 123\n": {},
		"netlink error: Operation not supported\n":                                    nil,
		"Cannot get FEC settings: Operation not supported\nActive FEC encoding: RS\n": nil,
	} {
		equal(t, text, want, ParseFEC(text))
	}
}
