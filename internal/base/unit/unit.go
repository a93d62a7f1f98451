package unit

// BitRate is a data rate in bits per second. Rates are always bits, memory is always bytes.
//
// It is a float because rates are quotients of counts and times; fractions of a bit per second are
// noise and never printed.
type BitRate float64

// The decimal multiples that network equipment uses.
const (
	BitPerSecond     BitRate = 1
	KilobitPerSecond         = 1e3 * BitPerSecond
	MegabitPerSecond         = 1e6 * BitPerSecond
	GigabitPerSecond         = 1e9 * BitPerSecond
)

// Bytes is an amount of memory or payload in bytes.
//
// It is an integer because the kernel's sizes are, and a buffer size must be restored exactly.
type Bytes int64

// Binary multiples, as the kernel counts memory.
const (
	Byte     Bytes = 1
	Kibibyte       = 1024 * Byte
	Mebibyte       = 1024 * Kibibyte
	Gibibyte       = 1024 * Mebibyte
)
