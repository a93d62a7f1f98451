//go:build !linux

package engine

// Multiplex leaves every worker its goroutine: package net waits for all connections together.
func Multiplex(workers []*Worker, _ int) (threads int) { return len(workers) }

// carrier does not exist on this system.
type carrier struct{}

func (c *carrier) run(*Worker, int) error { return nil }
