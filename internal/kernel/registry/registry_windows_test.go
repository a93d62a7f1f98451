package registry_test

import (
	"testing"

	"github.com/linerate/linerate/internal/kernel/registry"
)

func TestLocal(t *testing.T) { store(t, registry.Local{}) }
