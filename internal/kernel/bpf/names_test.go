package bpf

import "testing"

// TestParseFunction reads what kernels print for %pS.
func TestParseFunction(t *testing.T) {
	const address = 0xffffffff81234567
	for text, want := range map[string]Function{
		"tcp_sendmsg+0x17/0x60":                      {"tcp_sendmsg", "", address - 0x17, 0x60},
		"mlx5e_napi_poll+0x0/0x5c0 [mlx5_core]":      {"mlx5e_napi_poll", "mlx5_core", address, 0x5c0},
		"bpf_prog_6deef7357e7b4530_sd_fw+0x2/0x9":    {"bpf_prog_6deef7357e7b4530_sd_fw", "bpf", address - 2, 9},
		"bpf_prog_6deef7357e7b4530+0x2/0x9 [bpf]":    {"bpf_prog_6deef7357e7b4530", "bpf", address - 2, 9},
		"bpf_prog_run_generic_xdp+0x2/0x9":           {"bpf_prog_run_generic_xdp", "", address - 2, 9},
		"bpf_trampoline_6442535143+0x2/0x9":          {"bpf_trampoline_6442535143", "bpf", address - 2, 9},
		"bpf_trampoline_link_prog+0x2/0x9":           {"bpf_trampoline_link_prog", "", address - 2, 9},
		"__pfx_ip_rcv+0x3/0x10":                      {"ip_rcv", "", address - 3, 0x10},
		"last_of_a_section+0x20/0x20":                {"last_of_a_section", "", address - 0x20, 0x21},
		"nf_hook [module with text behind]+0x1/0x2":  {},
		"0xffffffff81234567":                         {},
		"":                                           {},
		"+0x1/0x2":                                   {},
		"name+0x1":                                   {},
		"name+0xzz/0x2":                              {},
		"name+0xffffffffffffffff/0xffffffffffffffff": {},
	} {
		got, ok := parseFunction(address, text)
		if got != want || ok != (want != Function{}) {
			t.Errorf("%q is %+v, %v", text, got, ok)
		}
	}
}
