//go:build !(linux && soak)

package worldtest_test

// guestCommands are programs that guests lack: none of these tests needs one.
func guestCommands() map[string]func() { return nil }
