package datagram_test

import (
	"testing"

	"github.com/linerate/linerate/internal/traffic/traffictest"
)

func TestMain(m *testing.M) { traffictest.Main(m) }
