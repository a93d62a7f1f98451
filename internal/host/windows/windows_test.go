package windows

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestAnswers(t *testing.T) {
	// Fields and their forms as public tools show them for Get-NetAdapterAdvancedProperty; the
	// display texts of real systems are Chinese, German or Japanese, and are not asked for.
	rows, err := ParseAnswer([]byte("\xef\xbb\xbf" +
		`{"rows":[{"Name":"以太网","RegistryKeyword":"*FlowControl","RegistryValue":["3"],` +
		`"ValidRegistryValues":["0","1","2","3"],"NumericParameterMaxValue":null}],"ok":true}` + "\r\n"))
	if err != nil || len(rows) != 1 || rows[0].Text("Name") != "以太网" || rows[0].Text("RegistryValue") != "3" ||
		!slices.Equal(rows[0].Texts("ValidRegistryValues"), []string{"0", "1", "2", "3"}) ||
		rows[0].Texts("NumericParameterMaxValue") != nil {
		t.Errorf("%v, %v", rows, err)
	}
	rows, err = ParseAnswer([]byte(`{"ok":true,"rows":{"Name":"Ethernet",` +
		`"ReceivedDiscardedPackets":4,"RegistryValue":"1514"}}`))
	if n, ok := rows[0].Number("ReceivedDiscardedPackets"); err != nil || n != 4 || !ok ||
		rows[0].Text("RegistryValue") != "1514" {
		t.Errorf("%v, %v", rows, err)
	}
	if _, ok := rows[0].Number("Name"); ok {
		t.Error("a name is no number")
	}
	if rows, err = ParseAnswer([]byte(`{"ok":true,"rows":[]}`)); err != nil || len(rows) != 0 {
		t.Errorf("%v, %v", rows, err)
	}
	var f *Failure
	if _, err = ParseAnswer([]byte(`{"ok":false,"category":"PermissionDenied",` +
		`"code":"Windows System Error 5,Set-NetTCPSetting"}`)); !errors.As(err, &f) ||
		f.Category != "PermissionDenied" {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"", "\r\n", "{}", `{"ok":true,"rows":`, "Empf. Fenster Auto-Tuningstufe : normal",
		"null", "[1]",
		`{"ok":true,"rows":7}`} {
		if _, err := ParseAnswer([]byte(bad)); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{"Ethernet 2": "'Ethernet 2'", "a'b": "'a''b'", "a’;x": "'a’’;x'",
		"$(x)": "'$(x)'"} {
		if got, ok := Quote(text); got != want || !ok {
			t.Errorf("%s: %s", text, got)
		}
	}
	if _, ok := Quote(`a"b`); ok {
		t.Error("a double quote cannot be on the command line")
	}
	if strings.Contains(Script("Get-NetAdapter"), `"`) {
		t.Error("the script has double quotes")
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(`{"ok":true,"rows":[{"Name":"Ethernet","RegistryValue":["3"]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		rows, _ := ParseAnswer([]byte(text))
		for _, r := range rows {
			for name := range r {
				_, _ = r.Number(name)
			}
		}
	})
}
