// The compiler accepts a function without a body only beside assembly: heldClock is one
// (burst_linux.go).
