package native_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/knobtest"
	"github.com/linerate/linerate/internal/change/knob/native"
	"github.com/linerate/linerate/internal/kernel/registry"
	"github.com/linerate/linerate/internal/kernel/tool"
)

// pane is a Windows host from its recordings.
type pane struct {
	*played
	hive                *registry.Hive
	adapters, templates []map[string]any
}

var (
	nameIs    = regexp.MustCompile(`\$_\.(?:Name|SettingName) -eq '((?:[^']|'')*)'`)
	keywordIs = regexp.MustCompile(`\$_\.RegistryKeyword -eq '([^']*)'`)
	valueIs   = regexp.MustCompile(`\[string\]\$_\.(\w+)`)
	setTCP    = regexp.MustCompile(`^Set-NetTCPSetting -SettingName '([^']*)' -(\w+) '([^']*)'$`)
	setNIC    = regexp.MustCompile(`^Set-NetAdapterAdvancedProperty -Name \(\[WildcardPattern\]::Escape\('([^']*)'\)\) ` +
		`-RegistryKeyword '([^']*)' -RegistryValue '([^']*)'$`)
)

// runPane plays the pipelines that the backend sends, and nothing else.
func (w *pane) runPane(_ *played, argv []string) (string, error) {
	if argv[0] != "powershell.exe" {
		return "", fmt.Errorf("%s: %w", argv[0], tool.ErrNoProgram)
	}
	script := argv[len(argv)-1]
	_, script, _ = strings.Cut(script, "$r=@(")
	pipeline, _, _ := strings.Cut(script, ");ConvertTo-Json")
	rows := []map[string]any{}
	first := func(re *regexp.Regexp) string {
		if m := re.FindStringSubmatch(pipeline); m != nil {
			return m[1]
		}
		return ""
	}
	switch {
	case setTCP.MatchString(pipeline):
		m := setTCP.FindStringSubmatch(pipeline)
		for _, r := range w.templates {
			if r["SettingName"] == m[1] {
				r[strings.TrimSuffix(strings.TrimSuffix(m[2], "Mss"), "Ms")] = m[3]
			}
		}
	case setNIC.MatchString(pipeline):
		m := setNIC.FindStringSubmatch(pipeline)
		for _, r := range w.adapters {
			if r["Name"] == m[1] && r["RegistryKeyword"] == m[2] {
				r["RegistryValue"] = []string{m[3]}
			}
		}
	case strings.HasPrefix(pipeline, "Get-NetTCPSetting"):
		for _, r := range w.templates {
			if name := first(nameIs); name == "" && r["SettingName"] != "Automatic" || r["SettingName"] == name {
				rows = append(rows, map[string]any{"SettingName": r["SettingName"], "Value": r[first(valueIs)],
					"Effective": r["AutoTuningLevelEffective"]})
			}
		}
	case strings.HasPrefix(pipeline, "Get-NetAdapterAdvancedProperty"):
		for _, r := range w.adapters {
			if name := first(nameIs); (name == "" || r["Name"] == name) && r["RegistryKeyword"] == first(keywordIs) {
				rows = append(rows, r)
			}
		}
	default:
		return `{"ok":false,"category":"ObjectNotFound","code":"CommandNotFoundException"}`, nil
	}
	out, err := json.Marshal(map[string]any{"ok": true, "rows": rows})
	return string(out) + "\r\n", err
}

func newPane(t testing.TB) *pane {
	w := &pane{hive: registry.ParseHive(recorded(t, "windows.reg"))}
	var doc struct{ Adapters, Templates []map[string]any }
	if err := json.Unmarshal([]byte(recorded(t, "windows.json")), &doc); err != nil {
		t.Fatal(err)
	}
	w.adapters, w.templates = doc.Adapters, doc.Templates
	w.played = &played{run: w.runPane}
	return w
}

func (w *pane) host(t testing.TB) *native.Host {
	return native.Windows(catalogue(t, "windows"), w.hive, w.played)
}

const tcpip = `registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\`

func TestWindows(t *testing.T) {
	knobtest.Suite(t, func(t *testing.T) knobtest.Fixture {
		w := newPane(t)
		host := w.host(t)
		return knobtest.Fixture{
			Backend: host,
			Writable: []knobtest.Pair{
				{Knob: tcpip + "TcpWindowSize", A: "131400", B: "absent"},
				{Knob: tcpip + "TcpTimedWaitDelay", A: "60", B: "30"},
				{Knob: "nettcp:InternetCustom/AutoTuningLevelLocal", A: "Restricted", B: "Normal"},
				{Knob: "nettcp:InternetCustom/MinRtoMs", A: "50", B: "300"},
				{Knob: "adapter:Ethernet/ndis.ReceiveBuffers", A: "512", B: "2048"},
				{Knob: "adapter:Ethernet/ITR", A: "0", B: "65535"},
				{Knob: "adapter:イーサネット 2/ndis.FlowControl", A: "3", B: "0"},
			},
			Messy: []knobtest.Messy{{Knob: tcpip + "Tcp1323Opts", Text: " 03 ", ReadBack: "3"}},
			Invalid: []knob.Setting{
				{Knob: tcpip + "TcpWindowSize", Value: "large"},
				{Knob: tcpip + "TcpWindowSize", Value: "4294967296"},
				{Knob: "adapter:Ethernet/ndis.JumboPacket", Value: "9000"},
				{Knob: "adapter:Ethernet/ndis.ReceiveBuffers", Value: "4096"},
				{Knob: "adapter:Ethernet/ndis.ReceiveBuffers", Value: "85"},
				{Knob: "nettcp:InternetCustom/AutoTuningLevelLocal", Value: "a b"},
			},
			ReadOnly: knob.Setting{Knob: "nettcp:Datacenter/AutoTuningLevelLocal", Value: "Disabled"},
			Missing: []knob.ID{"nettcp:NoSuch/MinRtoMs", "adapter:Ethernet 9/ndis.RSS", "adapter:Ethernet/ndis.NoSuch",
				`registry:HKLM\SYSTEM\NoSuchKey\x`, `registry:HKCU\Software\x`},
			Unsupported: "sysctl:net.inet.tcp.sendspace",
			Foreign: func(t *testing.T, s knob.Setting) {
				w.mu.Lock()
				defer w.mu.Unlock()
				switch s.Knob.Kind() {
				case knob.KindRegistry:
					var n uint64
					if _, err := fmt.Sscan(string(s.Value), &n); err != nil {
						_ = w.hive.Delete(s.Knob.Subject(), s.Knob.Attribute())
					} else if err := w.hive.Set(s.Knob.Subject(), s.Knob.Attribute(),
						registry.Value{Kind: registry.Number, Number: n}); err != nil {
						t.Fatal(err)
					}
				case knob.KindNetTCP:
					for _, r := range w.templates {
						if r["SettingName"] == s.Knob.Subject() {
							r[strings.TrimSuffix(s.Knob.Attribute(), "Ms")] = string(s.Value)
						}
					}
				case knob.KindAdapter:
					keyword := strings.Replace(s.Knob.Attribute(), "ndis.", "*", 1)
					for _, r := range w.adapters {
						if r["Name"] == s.Knob.Subject() && r["RegistryKeyword"] == keyword {
							r["RegistryValue"] = string(s.Value)
						}
					}
				}
			},
			Device: "adapter:Ethernet/ITR",
			Vanish: func(*testing.T) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.adapters = w.adapters[4:]
			},
		}
	})
}

// A value that did not exist is absent again after an undo, and 0 is another state.
func TestAbsenceIsRestored(t *testing.T) {
	w := newPane(t)
	host := w.host(t)
	const id = tcpip + "TcpWindowSize"
	before, err := host.Read(t.Context(), id)
	if before != knob.Absent || err != nil {
		t.Fatalf("%q, %v", before, err)
	}
	for _, v := range []knob.Value{"0", before} {
		if err := host.Write(t.Context(), id, v); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.hive.Get(`HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`, "TcpWindowSize"); err == nil {
		t.Error("the value is still there")
	}
}

func TestWindowsInstances(t *testing.T) {
	c, host := catalogue(t, "windows"), newPane(t).host(t)
	for pattern, want := range map[knob.ID]int{"adapter:*/ndis.FlowControl": 2, "adapter:*/ITR": 1,
		"adapter:*/ndis.RSS": 0,
		"nettcp:*/MinRtoMs":  2, tcpip + "TcpWindowSize": 1} {
		d, _ := c.Lookup(pattern)
		if got, err := host.Instances(t.Context(), d); err != nil || len(got) != want {
			t.Errorf("%s: %v, %v", pattern, got, err)
		}
	}
}
