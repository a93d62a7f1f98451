package server

import (
	"bytes"
	"errors"
	"fmt"
)

// MostBytes bounds one output: the statistics of a server with thousands of zones are a few
// megabytes.
const MostBytes = 64 << 20

// ErrUnknown reports an output of no server that this package knows.
var ErrUnknown = errors.New("not the statistics of a name server that linerate knows")

// Parse recognises the output of a name server by its text, and returns what it says.
func Parse(body []byte) (Statistics, error) {
	if len(body) > MostBytes {
		return Statistics{}, fmt.Errorf("parse statistics: larger than %d bytes", MostBytes)
	}
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	start := bytes.TrimSpace(body)
	has := func(text string) bool { return bytes.Contains(body, []byte(text)) }
	switch {
	case bytes.HasPrefix(start, []byte("<")) && has("<statistics"):
		return parseBINDXML(body)
	case bytes.HasPrefix(start, []byte("{")) && has(`"json-stats-version"`):
		return parseBINDJSON(body)
	case has("+++ Statistics Dump +++"):
		return parseBINDFile(body)
	case has("recursive clients: ") && has("version: "):
		return parseRNDCStatus(body)
	case has("total.num.queries="):
		return parseUnbound(body)
	case has("answer.total") || has("answer_total"):
		return parseKnot(body)
	case bytes.HasPrefix(start, []byte("[")) && (has(`"StatisticItem"`) || has(`"ConfigSetting"`)):
		return parsePowerDNSAPI(body)
	case has("packetcache-") && has("questions"):
		return parsePowerDNS(body)
	case has("hits.bind") && has("misses.bind"):
		return parseDnsmasq(body)
	case bytes.HasPrefix(start, []byte("{")) && has("totalTransactions"):
		return parseResolvedJSON(start)
	case has("Cache Hits: "):
		return parseResolved(body)
	}
	return Statistics{}, ErrUnknown
}
