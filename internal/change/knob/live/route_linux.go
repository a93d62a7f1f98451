package live

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/route"
)

// routeKnobs are metrics of the routes of the main table.
type routeKnobs struct {
	// mu serialises the read-change-write of a route: two metrics of one route changed at once
	// would lose one of them.
	mu sync.Mutex
}

// noCongctl is the value of a route without its own algorithm. No algorithm has this name, and an
// empty value could not be typed.
const noCongctl = "none"

// routeMetrics are the attributes that are numbers.
var routeMetrics = map[string]route.Metric{
	"window": route.MetricWindow, "mtu": route.MetricMTU, "advmss": route.MetricAdvMSS,
	"initcwnd": route.MetricInitCwnd, "initrwnd": route.MetricInitRwnd,
	"quickack": route.MetricQuickack, "rto_min": route.MetricRTOMin, "ecn": route.MetricECN,
	"mtu_lock": route.MetricMTULock, "congctl_lock": route.MetricCongctlLock,
}

// Of several routes to one destination it is the one in use, with the lowest priority value.
func (*routeKnobs) read(destination, attribute string) (knob.Value, error) {
	metric, isNumber := routeMetrics[attribute]
	if !isNumber && attribute != "congctl" {
		return "", fmt.Errorf("%w: route attribute %s", knob.ErrNotSupported, attribute)
	}
	r, err := withClient(func(c *nl.Client) (route.Route, error) { return route.New(c).Get(destination) })
	switch {
	case err != nil:
		return "", err
	case isNumber:
		return knob.Value(strconv.Itoa(r.Metric(metric))), nil
	case r.Congestion == "":
		return noCongctl, nil
	}
	return knob.Value(r.Congestion), nil
}

func (k *routeKnobs) write(destination, attribute string, v knob.Value) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if attribute == "congctl" {
		algorithm := string(v)
		if v == noCongctl {
			algorithm = ""
		}
		return do(func(c *nl.Client) error { return route.New(c).SetCongestion(destination, algorithm) })
	}
	metric, ok := routeMetrics[attribute]
	if !ok {
		return fmt.Errorf("%w: route attribute %s", knob.ErrNotSupported, attribute)
	}
	n, err := strconv.Atoi(string(v))
	if err != nil {
		return &knob.RangeError{Value: v, Allowed: "an integer"}
	}
	return do(func(c *nl.Client) error { return route.New(c).SetMetric(destination, metric, n) })
}
