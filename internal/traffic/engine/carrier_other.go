//go:build !linux

package engine

// Multiplex leaves every worker its goroutine: package net waits for all connections together
// anyway.
func Multiplex(workers []*Worker, _ int) (threads int) { return len(workers) }

// carrier never exists here.
type carrier struct{}

func (c *carrier) run(*Worker, int) error { return nil }
