package api

import (
	_ "embed"
	"net/http"
)

// openapi describes every path. docs/hub-api.json is a copy of it.
//
//go:embed openapi.json
var openapi []byte

func described(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openapi)
	return nil
}
