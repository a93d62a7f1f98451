package capture

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

// TestGuestCardElsewhere moves a card to a network namespace whose sysfs is not mounted, as a
// program sees it that nsenter(1) has moved there. Netlink has its statistics all the same.
func TestGuestCardElsewhere(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	name := guesttest.Interface(t, "e1000e")
	before, err := host.Root{}.Counters()
	if err != nil {
		t.Fatal(err)
	}
	thread, moved := make(chan int), make(chan struct{})
	var elsewhere *host.Counters
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread belongs to the other namespace
		err := unix.Unshare(unix.CLONE_NEWNET)
		thread <- unix.Gettid()
		<-moved
		if err == nil {
			ip(t, "link", "set", name, "up")              // a child of this thread
			for err == nil && !counted(elsewhere, name) { // once the link is back
				time.Sleep(pause)
				elsewhere, err = host.Root{}.Counters()
			}
			// Without a process of its own, the namespace returns the card in a worker (cleanup_net),
			// and the next test of this guest could come before.
			ip(t, "link", "set", name, "netns", "1")
		}
		done <- err
	}()
	ip(t, "link", "set", name, "netns", strconv.Itoa(<-thread))
	close(moved)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if elsewhere.Drivers[name] != "e1000e" {
		t.Errorf("drivers %v", elsewhere.Drivers)
	}
	for counter := range before.Values {
		_, ok := elsewhere.Values[counter]
		if !ok && (strings.HasPrefix(counter, "nic."+name+".") || strings.HasPrefix(counter, "ethtool."+name+".")) {
			t.Errorf("%s is known only where sysfs shows the card", counter)
		}
	}
}

// counted reports whether a reading has statistics of a card's driver.
func counted(c *host.Counters, name string) bool {
	if c == nil {
		return false
	}
	for counter := range c.Values {
		if strings.HasPrefix(counter, "ethtool."+name+".") {
			return true
		}
	}
	return false
}
