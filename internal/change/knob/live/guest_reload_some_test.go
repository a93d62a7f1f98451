//go:build linux && !soak

package live_test

// reloadAll kills at every step of a reload.
const reloadAll = false
