package cli

import (
	"context"
	"io"
	"os"
)

// awaited calls a function that may wait for another program or a user, and returns
// context.Canceled when a signal ends the command first. The call then goes on, until the process
// ends: no read of a pipe or a terminal can be taken back.
func awaited[T any](ended <-chan struct{}, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := call()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ended:
		var none T
		return none, context.Canceled
	}
}

// input is a source whose reads end with the command.
//
// Main takes the signals that would end a process, so a plain read that waits for its source would
// not see them: kill(1) would do nothing, and Ctrl-C only the second time.
type input struct {
	io.Reader
	close func() error
	ended <-chan struct{}
}

// Read reads into memory of its own: an abandoned read may still write there.
func (i *input) Read(p []byte) (int, error) {
	var own []byte
	n, err := awaited(i.ended, func() (int, error) {
		own = make([]byte, len(p))
		return i.Reader.Read(own)
	})
	if n > 0 {
		copy(p, own[:n])
	}
	return n, err
}

// Close closes a file, and leaves standard input open.
func (i *input) Close() error { return i.close() }

// stdin returns standard input as a source.
func (a *app) stdin() *input {
	return &input{a.in, func() error { return nil }, a.ended}
}

// openFile opens a file for reading. A named pipe waits for its writer even to be opened.
func (a *app) openFile(name string) (*input, *os.File, error) {
	f, err := awaited(a.ended, func() (*os.File, error) { return os.Open(name) })
	if err != nil {
		return nil, nil, err
	}
	return &input{f, f.Close, a.ended}, f, nil
}

// openInput opens a file for reading, or standard input for "-".
func (a *app) openInput(name string) (*input, error) {
	if name == "-" {
		return a.stdin(), nil
	}
	in, _, err := a.openFile(name)
	return in, err
}

// waits reports whether a read of a file may wait for another program: a pipe, a socket, a
// terminal.
func waits(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}
