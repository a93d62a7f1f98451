package powershell

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ran returns the commands of a text that set something, with their lines.
func ran(text string) []string {
	var all []string
	for _, c := range Expand(text, func(words []string) Need {
		if words[0] == "Set" || words[0] == "netsh" {
			return Wanted
		}
		return Unwanted
	}).Commands {
		known := ""
		if !c.Known {
			known = " ?"
		}
		all = append(all, fmt.Sprintf("%d %s%s", c.Line, c.Text, known))
	}
	return all
}

// TestExpand: values get to the places where a script uses them.
func TestExpand(t *testing.T) {
	const key = `"HKLM:\A\Interfaces`
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"strings", "$a = 'HKLM:\\A'\n$n = \"x$a\"\nSet \"$a\\B\" $n", []string{`3 Set "HKLM:\A\B" "xHKLM:\A"`}},
		{"sums and numbers", "$n = 64KB * 2\n$p = 'HK:\\A' + '\\' + 'B'\nSet $p $n", []string{`3 Set "HK:\A\B" 131072`}},
		{"a format", "Set (\"{0}\\{1}\" -f 'HKLM:\\A', 'B') 1", []string{`1 Set "HKLM:\A\B" 1`}},
		{"Join-Path", "$k = Join-Path -Path 'HKLM:\\A' -ChildPath B\nSet $k 1", []string{`2 Set "HKLM:\A\B" 1`}},
		{"the keys below one", "$i = Get-ChildItem 'HKLM:\\A\\Interfaces' -EA 0 | Where-Object { $_ }\n" +
			"foreach ($k in $i) {\n$p = Join-Path 'HKLM:\\A\\Interfaces' $k.PSChildName\nSet $k.PSPath 1\nSet $p 2 }",
			[]string{"4 Set " + key + `\*" 1`, "5 Set " + key + `\*" 2`}},
		{"what is not known within a key", "Set \"HKLM:\\A\\$($nic.Guid)\\B\" $v", []string{`1 Set "HKLM:\A\*\B" $v`}},
		{"a list", "foreach ($x in @('a=1', 'b=2')) { netsh int tcp set global $x }",
			[]string{"1 netsh int tcp set global a=1", "1 netsh int tcp set global b=2"}},
		{"parts of strings", "@('a=1')|%{$k=$_ -split '=';netsh \"$($k[0])=$($k[1])\"}", []string{"1 netsh a=1"}},
		{"lists of words", "$all = @(\n@('int', 'rss=on'),\n@('int', 'rsc=on'))\nforeach ($c in $all) { & netsh @c }",
			[]string{"4 netsh int rss=on", "4 netsh int rsc=on"}},
		{"a part of a list", "$c = @('int', 'rss=on', 'Title')\nnetsh $c[0..1]", []string{"2 netsh int rss=on"}},
		{"a table", "$t = @{ 'A' = 1; B = 0x2 # two\n}\nforeach ($k in $t.Keys) { Set $k $t[$k] }",
			[]string{"3 Set A 1", "3 Set B 0x2"}},
		{"pairs", "@{A=1}.GetEnumerator() | ForEach-Object { Set $_.Key $_.Value }", []string{"1 Set A 1"}},
		{"tables in a table", "$t = @{ 'HKLM:\\A' = @{ N = 1 } }\nforeach ($p in $t.Keys) {\n" +
			"foreach ($n in $t[$p].GetEnumerator()) { Set $p $n.Name $n.Value } }", []string{`3 Set "HKLM:\A" N 1`}},
		{"rows", "$r = @(\n@{ P = 'HKLM:\\A'; N = 'X'; V = 1 }\n@{ P = 'HKLM:\\B'; N = 'Y'; V = 2 })\n" +
			"foreach ($x in $r) { Set $x.P $x.N $x.V }", []string{`4 Set "HKLM:\A" X 1`, `4 Set "HKLM:\B" Y 2`}},
		{"a splatted table", "$p = @{ Path = 'HKLM:\\A' }\nif ($x) { $p.Name = 'N' }\nSet @p -Value 1",
			[]string{`3 Set -Path "HKLM:\A" -Name N -Value 1`}},
		{"a function", "function S {\nparam([string]$Path, $N, [switch]$F, $V = 7)\nSet $Path $N $V\n}\n" +
			"S -F -Path 'HKLM:\\A' X\nS 'HKLM:\\B' Y 2", []string{`5 Set "HKLM:\A" X 7`, `6 Set "HKLM:\B" Y 2`}},
		{"a function without a call", "function S { $k = 1\nSet $k }", []string{"2 Set 1"}},
		{"branches", "$m = 1500\nif ($x) { $m = 9000 }\nSet $m", []string{"3 Set $m"}},
		{"one branch", "if ($x) { $m = 1 }\nelse { Set 2 }\nSet $m", []string{"2 Set 2", "3 Set 1"}},
		{"a switch", "switch ($c) {\n'1' { Set 1; Say x }\ndefault { Set 2 } }", []string{"2 Set 1", "3 Set 2"}},
		{"blocks of a table", "$t = @{ Apply = { Set 1 }; Revert = { Set 0 } }", []string{"1 Set 1"}},
		{"a number as text", "$v = [Convert]::ToUInt32('ffff', 16)\nSet $v", []string{"2 Set 0xffff"}},
		{"a text over lines", "$t = @\"\nnetsh int\n\"@\nSet $t", []string{`4 Set "netsh int"`}},
		{"an excerpt that ends in a block", "foreach ($x in 'a', 'b') {\nSet $x", []string{"2 Set a", "2 Set b"}},
		{"a page", "Don't use it (see below :(\n$a = 1\nSet $a", []string{"3 Set 1"}},
		{"a name that is not known",
			"foreach ($k in $other.Keys) { Set -Path $k -Name $n 1 }", []string{"1 Set -Path $k -Name $n 1 ?"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, ran(c.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestExpandIsBounded: what a text makes of itself is bounded by its length.
func TestExpandIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"a string that doubles":  "$a = 'x'\n" + strings.Repeat("$a = $a + $a\nSet $a\n", 200),
		"a list that doubles":    "$a = @(1)\n" + strings.Repeat("$a = $a + $a\n", 200) + "foreach ($x in $a) { Set $x }",
		"loops in loops":         "$a = 1..200\n" + strings.Repeat("foreach ($x in $a) { ", 30) + "Set $x",
		"functions that call":    "function f($a) { f $a; g $a; Set $a }\nfunction g($a) { f $a; f $a; g $a }\nf 1\ng 2",
		"lists in lists":         "$a = 1..200\n" + strings.Repeat("$a = $a,$a,$a\n", 100) + "Set \"$a\"",
		"blocks in blocks":       strings.Repeat("if (1) { & { @( $( ", 5000),
		"strings without an end": strings.Repeat("\"$(", 50000) + "\n" + strings.Repeat("@\"\n<#", 20000),
	} {
		t.Run(name, func(t *testing.T) {
			size := 0
			for _, c := range ran(text) {
				size += len(c)
			}
			if most := 2 * (atLeast + 3*len(text)); size > most {
				t.Errorf("%d bytes of commands from %d bytes, want at most %d", size, len(text), most)
			}
		})
	}
}

// FuzzExpand: every command is of a line of the text, and is what was asked for.
func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"$a=1\nSet $a", "foreach ($x in @(1,2)) { Set $x }", "$t=@{a=1}\nSet @t",
		"Set \"$($a.b)\"", "function f($a) { Set $a }\nf 1", "@\"\n$a\n\"@", "@(1..3)|%{Set $_}",
		"$a[0..1]", "(((", "$a = if (1) { 2 } else { 3 }"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		script := Expand(text, func(words []string) Need { return Wanted })
		for _, c := range script.Commands {
			if c.Line < 1 || c.Line > strings.Count(text, "\n")+1 || c.Text == "" || len(c.Text) > longestOut {
				t.Fatalf("%+v", c)
			}
		}
	})
}
