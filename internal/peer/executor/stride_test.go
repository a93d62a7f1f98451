//go:build linux && !soak

package executor_test

// killStride thins the steps out; TestCrashAtEveryStep plays all of them without processes.
const killStride = 7
