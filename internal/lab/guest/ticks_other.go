//go:build !amd64

package guest

const hasTicks = false

func ticks() int64 { return 0 }
