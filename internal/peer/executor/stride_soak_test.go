//go:build linux && soak

package executor_test

const killStride = 1
