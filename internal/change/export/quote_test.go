package export

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/knob"
)

// texts mean something to one of the languages.
var texts = []string{
	"'", `"`, "{{x}}", "{% x %}", "${x}", "''", "''${x}", `\`, `\\"`, "`id`", "$(id)", "#", " # x", "!unsafe", "- x",
	": y", "é", "|", "&a", "*a",
	"'\\''", "'; id; '", "%s", "-n", "x y", "=", ">x", "<x", "$$", "~", "[x]", "a'b\"c$d`e\\f", "",
}

// odd is a set with one text in every place that takes any: a value, an interface, the origin.
func odd(text string) Set {
	link := "e" + strings.NewReplacer(" ", "", "\n", "", ":", "", "/", "").Replace(text)
	value := knob.Value("v " + text + " v")
	return Set{
		Origin: Origin{Host: text, Kernel: "\n" + text, Time: time.Unix(0, 0),
			Drivers: map[string]string{link: "\r" + text}},
		Proof: &Proof{Target: text, Goal: text},
		Changes: []Change{
			{Knob: "sysctl:net.ipv4.tcp_congestion_control", From: "a", To: value, Why: text},
			{Knob: knob.SysctlID("net", "ipv4", "conf", link, "rp_filter"), From: "0", To: value},
			{Knob: knob.ID("link:" + link + "/gso_max_size"), From: "0", To: value},
		},
	}
}

// TestShellQuotes asks the shell itself what it made of the words: of a script whose every setting
// only prints what it was called with.
func TestShellQuotes(t *testing.T) {
	var set Set
	var want []string
	for i, text := range texts {
		o := odd(text)
		link := fmt.Sprint("e", i, strings.NewReplacer(" ", "", ":", "", "/", "").Replace(text))
		id := knob.SysctlID("net", "ipv4", "conf", link, "rp_filter")
		set.Changes = append(set.Changes, Change{Knob: id, From: "0", To: o.Changes[0].To},
			Change{Knob: knob.ID("link:" + link + "/mtu"), From: "0", To: o.Changes[0].To})
		want = append(want, "x", string(id), string(o.Changes[0].To), "sysctl", "net/ipv4/conf/"+link+"/rp_filter",
			"x", "link:"+link+"/mtu", string(o.Changes[0].To), "link", link, "mtu", "mtu")
	}
	b, err := Write(Shell, set)
	if err != nil || len(b.LeftOut) > 0 {
		t.Fatal(err, b.LeftOut)
	}
	before, _, ok := strings.Cut(b.Files[0].Content, "\ncase ${1:-apply} in")
	if !ok {
		t.Fatal("the script has no main part")
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c",
		before+"\none() { printf '%s\\0' \"$@\"; }\nchanges x\n").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The lines of a playbook outside of its script, and those of a NixOS module, as regular
// expressions: Q is a string with its quotes.
var (
	playbookLine = lines(`---`, `#.*`, ``, `- name: Q`, `  hosts: all`, `  become: true`, `  vars:`,
		`    linerate_if\d+_proven: Q`, `    linerate_script: !unsafe \|`,
		`  tasks:`, `    - name: (Q|[A-Z][a-z ,]+)`,
		`      (ansible.posix.sysctl|ansible.builtin.command|ansible.builtin.copy|ansible.builtin.systemd|environment):`,
		`        (name|value|content|LINERATE_IF\d+|stdin|mode): Q`, `        [a-z_]+: [a-z/.0-9-]+`,
		`        content: \|`, `        argv: \[[a-z/, -]+\]`,
		`      (register|check_mode|changed_when|failed_when|when): [a-z_A-Z". \[\]0-9,=!']+`,
		`          [\[\]A-Za-z=-]+( [a-zA-Z]+)*`,
		`          [A-Za-z]+=[a-z./-]+( apply)?`,
		`          Environment="LINERATE_IF1={{ linerate_if1 \| default\(linerate_if1_proven\) }}"`,
		`      changed_when: "'changed ' in linerate_apply.stdout"`)
	nixLine = lines(`#.*`, ``, `\{ config, lib, pkgs, utils, ... \}:`, `let`, `  if\d+ = Q;`, `in`, `\{`, `\}`,
		`  boot.kernel.sysctl = \{`, `  \};`, `    \};`,
		`    Q = Q;`, `  systemd.services.linerate-export = \{`,
		`    (description|path|wantedBy|wants|after) = (Q|\[( Q| pkgs.[a-z0-9]+)* \]);`, `    environment = \{`,
		`      LINERATE_IF\d+ = if\d+;`, `    serviceConfig = let`, `      script = pkgs.writeText Q ''`, `      '';`,
		`    in \{`, `      [A-Za-z]+ = (Q|true);`)
	interpolation = regexp.MustCompile(
		`\$\{(builtins\.replaceStrings \[ "\." \] \[ "/" \] if1|utils\.escapeSystemdPath if1|pkgs\.runtimeShell|script)\}`)
)

func lines(forms ...string) *regexp.Regexp {
	all := strings.ReplaceAll(strings.Join(forms, "|"), "Q", `(?:!unsafe )?"(?:[^"\\]|\\.)*"`)
	return regexp.MustCompile(`^(?:` + all + `)$`)
}

// TestQuotesHold: whatever a text is, every line of a file stays one of the lines that the format
// has; the script within is held by its indent.
func TestQuotesHold(t *testing.T) {
	for _, text := range texts {
		for _, format := range []Format{Ansible, NixOS} {
			b, err := Write(format, odd(text))
			if err != nil {
				t.Fatal(err)
			}
			within := false
			for line := range strings.SplitSeq(strings.TrimSuffix(b.Files[0].Content, "\n"), "\n") {
				switch {
				case format == Ansible && strings.HasPrefix(line, "    linerate_script:"):
					within = true
				case format == Ansible && within && (line == "" || strings.HasPrefix(line, "      ")):
					continue
				case format == NixOS && strings.HasSuffix(line, "writeText \"linerate-export\" ''"):
					within = true
				case format == NixOS && within && line != "      '';":
					if rest := strings.NewReplacer("'''", "", "''${", "").Replace(line); strings.Contains(rest, "''") ||
						strings.Contains(rest, "${") {
						t.Errorf("%q: %q ends the string", text, line)
					}
					continue
				default:
					within = false
				}
				form := playbookLine
				if format == NixOS {
					form, line = nixLine, interpolation.ReplaceAllString(line, "_")
					if strings.Contains(strings.ReplaceAll(line, `\$`, ""), "${") && !strings.HasPrefix(line, "#") {
						t.Errorf("%q: %q asks Nix for something", text, line)
					}
				}
				if !form.MatchString(line) {
					t.Errorf("%q %s: a line of no known form: %q", text, format, line)
				}
			}
		}
	}
}

// TestTemplates: Ansible takes nothing for a template that is not one of ours.
func TestTemplates(t *testing.T) {
	ours := regexp.MustCompile(
		`\{\{ linerate_(script|if1 \| default\(linerate_if1_proven\)( \| replace\('\.', '/'\))?) \}\}`)
	for _, text := range texts {
		b, err := Write(Ansible, odd(text))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(b.Files[0].Content, "\n") {
			trimmed := strings.TrimSpace(line)
			if strings.HasPrefix(trimmed, "#") || strings.Contains(line, "!unsafe") ||
				strings.HasPrefix(trimmed, "one ") || strings.HasPrefix(trimmed, "[ -n ") {
				continue // a comment, a text marked as none, a line of the script, which is marked as a whole
			}
			if rest := ours.ReplaceAllString(line, ""); strings.Contains(rest, "{{") || strings.Contains(rest, "{%") {
				t.Errorf("%q: %q", text, line)
			}
		}
	}
}

// TestYAMLStrings: a double-quoted scalar gives the text back; JSON strings are a part of YAML.
func TestYAMLStrings(t *testing.T) {
	for _, text := range append(texts, "\x00\x1b\n\u2028\u0085", "\xff") {
		var back string
		if err := json.Unmarshal([]byte(yamlQuote(text)), &back); err != nil ||
			back != strings.ToValidUTF8(text, "\ufffd") {
			t.Errorf("%q comes back as %q, %v", text, back, err)
		}
		if strings.ContainsAny(yamlQuote(text), "\n\u2028\u0085") {
			t.Errorf("%q has a line break", yamlQuote(text))
		}
	}
}

// FuzzWrite: no set makes a file of more lines than its settings have, a shell script that does not
// parse, or a panic.
func FuzzWrite(f *testing.F) {
	for _, text := range []string{"'", "$(id)", "''${x}", "{{x}}", "\n", "-x"} {
		f.Add("sysctl:net.ipv4.conf."+text+".rp_filter", text, text)
		f.Add("ethtool:"+text+"/ring.rx", text, text)
	}
	f.Fuzz(func(t *testing.T, id, value, host string) {
		set := Set{Origin: Origin{Host: host}, Changes: []Change{
			{Knob: knob.ID(id), From: "0", To: knob.Value(value)},
			{Knob: "sysctl:net.ipv4.tcp_sack", From: "0", To: "1"},
		}}
		for _, format := range Formats() {
			b, err := Write(format, set)
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range b.Files {
				for line := range strings.SplitSeq(file.Content, "\n") {
					if strings.ContainsAny(line, "\r\x1b\x00") {
						t.Fatalf("%s: control characters in %q", format, line)
					}
				}
				if format == Shell {
					name := filepath.Join(t.TempDir(), "script")
					if err := os.WriteFile(name, []byte(file.Content), 0o600); err != nil {
						t.Fatal(err)
					}
					if out, err := exec.CommandContext(t.Context(), "sh", "-n", name).CombinedOutput(); err != nil {
						t.Fatalf("%v\n%s\n%s", err, out, file.Content)
					}
				}
			}
		}
	})
}
