package knob

import _ "embed"

// ownDefinitions are the knobs of this system.
//
//go:embed catalogue/windows/windows.json
var ownDefinitions []byte

func systemCatalogue() [][]byte { return [][]byte{ownDefinitions} }
