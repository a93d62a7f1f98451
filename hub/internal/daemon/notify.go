package daemon

import (
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/term"
)

// notify sends the service manager a state: sd_notify(3), a datagram to the socket that it named.
// An empty name means that there is no service manager.
func notify(socket, state string) error {
	if socket == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify the service manager: %w", err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, state); err != nil {
		return fmt.Errorf("notify the service manager: %w", err)
	}
	return nil
}

// fromTerminal asks twice for a password, without echo. It returns ok=false if the file is not a
// terminal.
func fromTerminal(in *os.File, prompt io.Writer) (secret string, ok bool, err error) {
	fd := int(in.Fd())
	if !term.IsTerminal(fd) {
		return "", false, nil
	}
	ask := func(what string) (string, error) {
		fmt.Fprint(prompt, what)
		b, err := term.ReadPassword(fd)
		fmt.Fprintln(prompt)
		if err != nil {
			return "", fmt.Errorf("read password: %w", err)
		}
		return string(b), nil
	}
	first, err := ask("New password for the page: ")
	if err != nil {
		return "", true, err
	}
	again, err := ask("Again: ")
	if err == nil && again != first {
		err = usageError{fmt.Errorf("the two passwords differ")}
	}
	return first, true, err
}
