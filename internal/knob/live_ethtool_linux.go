package knob

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/linerate/linerate/internal/nl"
)

// ethtoolKnobs are settings of a driver that the kernel's ethtool family carries.
type ethtoolKnobs struct{}

func (ethtoolKnobs) read(name, attribute string) (Value, error) {
	if feature, ok := strings.CutPrefix(attribute, "feature."); ok {
		return readFeature(name, feature)
	}
	return "", fmt.Errorf("%w: ethtool attribute %s", ErrNotSupported, attribute)
}

func (ethtoolKnobs) write(name, attribute string, v Value) error {
	feature, ok := strings.CutPrefix(attribute, "feature.")
	if !ok {
		return fmt.Errorf("%w: ethtool attribute %s", ErrNotSupported, attribute)
	}
	on, ok := parseBool(string(v))
	if !ok {
		return &RangeError{Value: v, Allowed: "on or off"}
	}
	return do(func(c *nl.Client) error { return c.SetFeature(name, feature, on) })
}

func readFeature(link, feature string) (Value, error) {
	features, err := withClient(func(c *nl.Client) (map[string]nl.Feature, error) { return c.Features(link) })
	if err != nil {
		return "", err
	}
	f, ok := features[feature]
	switch {
	case !ok:
		return "", fmt.Errorf("%w: the kernel knows no feature %s", fs.ErrNotExist, feature)
	case f.On:
		return "on", nil
	}
	return "off", nil
}
