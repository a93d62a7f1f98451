package knob

import (
	"fmt"
	"io/fs"
	"strconv"
	"sync"

	"github.com/linerate/linerate/internal/nl"
)

// routeKnobs are metrics of the routes of the main table.
type routeKnobs struct {
	// mu serialises the read-change-write of a route: two metrics of one route changed at once would lose one of them.
	mu sync.Mutex
}

// Of several routes to one destination it is the one in use, with the lowest priority value.
func (*routeKnobs) read(destination, attribute string) (Value, error) {
	m := nl.RouteMetric(attribute)
	switch m {
	case nl.MetricWindow, nl.MetricMTU, nl.MetricAdvMSS, nl.MetricInitCwnd, nl.MetricInitRwnd, nl.MetricQuickack:
	default:
		return "", fmt.Errorf("%w: route attribute %s", ErrNotSupported, m)
	}
	routes, err := withClient(func(c *nl.Client) ([]nl.Route, error) { return c.Routes() })
	if err != nil {
		return "", err
	}
	var found *nl.Route
	for i, r := range routes {
		if r.Destination == destination && (found == nil || r.Priority < found.Priority) {
			found = &routes[i]
		}
	}
	if found == nil {
		return "", fmt.Errorf("%w: no such route in the main table", fs.ErrNotExist)
	}
	return Value(strconv.Itoa(found.Metric(m))), nil
}

func (k *routeKnobs) write(destination, attribute string, v Value) error {
	n, err := strconv.Atoi(string(v))
	if err != nil {
		return &RangeError{Value: v, Allowed: "an integer"}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return do(func(c *nl.Client) error { return c.SetRouteMetric(destination, nl.RouteMetric(attribute), n) })
}
