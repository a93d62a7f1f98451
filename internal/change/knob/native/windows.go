package native

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/host/windows"
	"github.com/linerate/linerate/internal/kernel/registry"
	"github.com/linerate/linerate/internal/kernel/tool"
)

// Windows returns the backend of a Windows host.
func Windows(catalog *knob.Catalog, store registry.Store, run tool.Runner) *Host {
	ps := powerShell{run}
	return &Host{catalog: catalog, root: "an administrator's console", kinds: map[string]accessor{
		knob.KindRegistry: values{store},
		knob.KindNetTCP:   templates{ps},
		knob.KindAdapter:  adapters{ps},
	}}
}

// values are entries of the registry. One that does not exist has the value "absent", and writing
// that removes it: the state before must come back, which a value of 0 would not be.
type values struct{ store registry.Store }

func (k values) get(id knob.ID) (v registry.Value, there bool, err error) {
	v, err = k.store.Get(id.Subject(), id.Attribute())
	if errors.Is(err, fs.ErrNotExist) {
		exists, keyErr := k.store.Exists(id.Subject())
		if keyErr == nil && exists {
			return registry.Value{}, false, nil
		}
	}
	if errors.Is(err, registry.ErrKey) {
		return v, false, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return v, err == nil, err
}

func (k values) read(_ context.Context, id knob.ID) (knob.Value, error) {
	v, there, err := k.get(id)
	switch {
	case err != nil:
		return "", err
	case !there:
		return knob.Absent, nil
	case v.Kind == registry.Text:
		return knob.Value(v.Text), nil
	case v.Kind == registry.Other:
		return "", fmt.Errorf("%w: a value of another type than number and text", knob.ErrNotSupported)
	}
	return knob.Value(strconv.FormatUint(v.Number, 10)), nil
}

// encoded keeps the type that the value has; a new one is a DWORD.
func (k values) encoded(id knob.ID, v knob.Value) (registry.Value, error) {
	now, there, err := k.get(id)
	if err != nil {
		return registry.Value{}, err
	}
	if there && now.Kind == registry.Text {
		return registry.Value{Kind: registry.Text, Text: string(v)}, nil
	}
	kind, bits := registry.Number, 32
	if now.Kind == registry.Wide {
		kind, bits = registry.Wide, 64
	}
	n, err := strconv.ParseUint(string(v), 10, bits)
	if err != nil {
		return registry.Value{}, &knob.RangeError{Value: v, Allowed: fmt.Sprintf("absent, or a number of %d bits", bits)}
	}
	return registry.Value{Kind: kind, Number: n}, nil
}

func (k values) check(_ context.Context, id knob.ID, v knob.Value) error {
	if v == knob.Absent {
		return nil
	}
	_, err := k.encoded(id, v)
	return err
}

func (k values) write(_ context.Context, id knob.ID, v knob.Value) error {
	if v == knob.Absent {
		return k.store.Delete(id.Subject(), id.Attribute())
	}
	encoded, err := k.encoded(id, v)
	if err != nil {
		return err
	}
	return k.store.Set(id.Subject(), id.Attribute(), encoded)
}

func (k values) list(context.Context, knob.ID) ([]knob.ID, error) { return nil, nil }

// powerShell asks for objects.
type powerShell struct{ run tool.Runner }

func (p powerShell) ask(ctx context.Context, pipeline string) ([]windows.Row, error) {
	out, err := p.run.Run(ctx, windows.Program, windows.Arguments(pipeline)...)
	if err != nil {
		return nil, err
	}
	rows, err := windows.ParseAnswer(out)
	var f *windows.Failure
	if !errors.As(err, &f) {
		return rows, err
	}
	switch f.Category {
	case "PermissionDenied", "SecurityError":
		return nil, fmt.Errorf("%w: %w", fs.ErrPermission, err)
	case "InvalidArgument", "InvalidData", "LimitsExceeded":
		return nil, fmt.Errorf("%w: %w", knob.ErrInvalid, err)
	case "ObjectNotFound":
		// The same category stands for a missing command, on a system without these modules.
		if strings.HasPrefix(f.Code, "CommandNotFound") {
			return nil, fmt.Errorf("%w: %w", knob.ErrNotSupported, err)
		}
		return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case "NotImplemented", "NotInstalled":
		return nil, fmt.Errorf("%w: %w", knob.ErrNotSupported, err)
	}
	return nil, err
}

// quoted makes literals of several texts.
func quoted(texts ...string) ([]string, error) {
	out := make([]string, len(texts))
	for i, text := range texts {
		q, ok := windows.Quote(text)
		if !ok {
			return nil, fmt.Errorf("%w: no name or value of Windows holds double quotes", fs.ErrNotExist)
		}
		out[i] = q
	}
	return out, nil
}

// word reports whether an attribute is a bare name, which goes into a script as it is.
func word(s string) bool {
	return s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// templates are the TCP settings of Windows.
type templates struct{ powerShell }

// property is the name that the class MSFT_NetTCPSetting has: the unit is in the parameter alone.
func property(attribute string) string {
	return strings.TrimSuffix(strings.TrimSuffix(attribute, "Mss"), "Ms")
}

func (k templates) row(ctx context.Context, id knob.ID) (windows.Row, error) {
	if !word(id.Attribute()) {
		return nil, fmt.Errorf("%w: attribute %s", knob.ErrNotSupported, id.Attribute())
	}
	q, err := quoted(id.Subject())
	if err != nil {
		return nil, err
	}
	rows, err := k.ask(ctx, "Get-NetTCPSetting | Where-Object {$_.SettingName -eq "+q[0]+"} | "+
		"Select-Object SettingName,@{n='Value';e={[string]$_."+property(id.Attribute())+"}},"+
		"@{n='Effective';e={[string]$_.AutoTuningLevelEffective}}")
	switch {
	case err != nil:
		return nil, err
	case len(rows) == 0:
		return nil, fs.ErrNotExist
	case len(rows) > 1 || rows[0].Text("SettingName") != id.Subject():
		return nil, errUnreadable
	}
	return rows[0], nil
}

func (k templates) read(ctx context.Context, id knob.ID) (knob.Value, error) {
	r, err := k.row(ctx, id)
	if err != nil {
		return "", err
	}
	v := r.Text("Value")
	if v == "" {
		return "", fmt.Errorf("%w: this template has no %s", knob.ErrNotSupported, id.Attribute())
	}
	// Where the module has no names for the numbers of the class (MSFT_NetTCPSetting).
	if n, err := strconv.Atoi(v); err == nil && id.Attribute() == "AutoTuningLevelLocal" && n >= 0 &&
		n < len(tuningLevels) {
		v = tuningLevels[n]
	}
	return knob.Value(v), nil
}

// tuningLevels are the names of AutoTuningLevelLocal by their number.
var tuningLevels = []string{"Disabled", "HighlyRestricted", "Restricted", "Normal", "Experimental"}

func (k templates) check(ctx context.Context, id knob.ID, v knob.Value) error {
	r, err := k.row(ctx, id)
	if err != nil {
		return err
	}
	if effective := r.Text("Effective"); id.Attribute() == "AutoTuningLevelLocal" && (effective == "GroupPolicy" ||
		effective == "1") {
		return fmt.Errorf("%w: a group policy holds it (AutoTuningLevelGroupPolicy)", knob.ErrReadOnly)
	}
	if !word(string(v)) {
		return &knob.RangeError{Value: v, Allowed: "one word or number"}
	}
	return nil
}

func (k templates) write(ctx context.Context, id knob.ID, v knob.Value) error {
	q, err := quoted(id.Subject(), string(v))
	if err != nil {
		return err
	}
	_, err = k.ask(ctx, "Set-NetTCPSetting -SettingName "+q[0]+" -"+id.Attribute()+" "+q[1])
	return err
}

func (k templates) list(ctx context.Context, pattern knob.ID) ([]knob.ID, error) {
	rows, err := k.ask(ctx,
		"Get-NetTCPSetting | Where-Object {$_.SettingName -ne 'Automatic'} | Select-Object SettingName")
	return idsOf(rows, "SettingName", pattern), err
}

// idsOf makes the knobs of a pattern for the names in a column.
func idsOf(rows []windows.Row, column string, pattern knob.ID) []knob.ID {
	var ids []knob.ID
	for _, r := range rows {
		id, err := knob.ParseID(pattern.Kind() + ":" + r.Text(column) + "/" + pattern.Attribute())
		if err == nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// adapters are the advanced properties of network adapters. The keywords that all drivers share
// begin with a star, which stands for anything in the catalogue: "ndis." stands for it here.
type adapters struct{ powerShell }

func keyword(attribute string) string {
	if standard, ok := strings.CutPrefix(attribute, "ndis."); ok {
		return "*" + standard
	}
	return attribute
}

func (k adapters) row(ctx context.Context, id knob.ID) (windows.Row, error) {
	q, err := quoted(id.Subject(), keyword(id.Attribute()))
	if err != nil {
		return nil, err
	}
	rows, err := k.ask(ctx, "Get-NetAdapterAdvancedProperty -AllProperties | Where-Object {$_.Name -eq "+q[0]+
		" -and $_.RegistryKeyword -eq "+q[1]+"} | Select-Object Name,RegistryKeyword,RegistryValue,ValidRegistryValues,"+
		"NumericParameterMinValue,NumericParameterMaxValue,NumericParameterStepValue")
	switch {
	case err != nil:
		return nil, err
	case len(rows) == 0:
		return nil, fs.ErrNotExist
	case len(rows) > 1:
		return nil, errUnreadable
	}
	return rows[0], nil
}

func (k adapters) read(ctx context.Context, id knob.ID) (knob.Value, error) {
	r, err := k.row(ctx, id)
	if err != nil {
		return "", err
	}
	v := r.Text("RegistryValue")
	if v == "" {
		return "", errUnreadable
	}
	return knob.Value(v), nil
}

// check asks the driver's own list or range: Windows writes any text and restarts the adapter.
func (k adapters) check(ctx context.Context, id knob.ID, v knob.Value) error {
	r, err := k.row(ctx, id)
	if err != nil {
		return err
	}
	if valid := r.Texts("ValidRegistryValues"); len(valid) > 0 && !slices.Contains(valid, string(v)) {
		return &knob.RangeError{Value: v, Allowed: "one of " + strings.Join(valid, ", ")}
	}
	low, hasLow := r.Number("NumericParameterMinValue")
	high, hasHigh := r.Number("NumericParameterMaxValue")
	n, err := strconv.ParseUint(string(v), 10, 64)
	if hasLow && hasHigh && high > low && (err != nil || n < low || n > high) {
		return &knob.RangeError{Value: v, Allowed: fmt.Sprintf("an integer from %d to %d", low, high)}
	}
	if step, ok := r.Number("NumericParameterStepValue"); ok && step > 1 && hasLow && n >= low && (n-low)%step != 0 {
		return &knob.RangeError{Value: v, Allowed: fmt.Sprintf("%d and steps of %d from there", low, step)}
	}
	return nil
}

func (k adapters) write(ctx context.Context, id knob.ID, v knob.Value) error {
	q, err := quoted(id.Subject(), keyword(id.Attribute()), string(v))
	if err != nil {
		return err
	}
	_, err = k.ask(ctx, "Set-NetAdapterAdvancedProperty -Name ([WildcardPattern]::Escape("+q[0]+")) -RegistryKeyword "+
		q[1]+" -RegistryValue "+q[2])
	return err
}

func (k adapters) list(ctx context.Context, pattern knob.ID) ([]knob.ID, error) {
	q, err := quoted(keyword(pattern.Attribute()))
	if err != nil {
		return nil, err
	}
	rows, err := k.ask(ctx, "Get-NetAdapterAdvancedProperty -AllProperties | Where-Object {$_.RegistryKeyword -eq "+q[0]+
		"} | Select-Object Name")
	return idsOf(rows, "Name", pattern), err
}
