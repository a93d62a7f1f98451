// The compiler accepts a function without a body only beside assembly: procPin is one
// (hold_linux.go).
