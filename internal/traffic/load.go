package traffic

import (
	"context"
	"errors"
)

// Load is the round trip on an idle path, and while each direction is full. Package loop runs it as
// four tests and puts their results together; neither end runs it here.
const Load Test = "load"

type loadTest struct{}

func (loadTest) traits() traits {
	return traits{composed: true, takes: manyStreams | methods | tcpOptions | sourcePorts | gaps}
}

func (loadTest) fill(s *Spec)        { fillPings(s) }
func (loadTest) check(s Spec) string { return checkPingTest(s) }

// composedText refuses to run a test that is put together from other tests.
const composedText = "load and burst are several tests each, which the near end runs one after the other"

var errComposed = errors.New(composedText)

func (loadTest) near(context.Context, *nearEnd) (cast, error) { return cast{}, errComposed }
func (loadTest) far(context.Context, *farEnd) (cast, error)   { return cast{}, errComposed }
func (loadTest) interval(*Interval, Direction, part, part)    {}
func (loadTest) result(*Result, outcome) (packets uint64)     { return 0 }
