package sys

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SetSendTimes lets the kernel report when messages that [Outbox.Stamp] marks leave, and lets an
// [Inbox] report arrival times as [SetReceiveTimes] does (SO_TIMESTAMPING; numbers of messages
// since Linux 3.17, marks of single messages since Linux 4.6). It begins a new numbering from 0.
func SetSendTimes(fd int) error {
	const flags = unix.SOF_TIMESTAMPING_SOFTWARE | unix.SOF_TIMESTAMPING_RX_SOFTWARE |
		unix.SOF_TIMESTAMPING_OPT_ID | unix.SOF_TIMESTAMPING_OPT_TSONLY
	// The numbering begins again when the option is switched on, net/core/sock.c.
	for _, v := range []int{unix.SOF_TIMESTAMPING_RX_SOFTWARE, flags} {
		err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, v)
		switch {
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOPROTOOPT):
			return &UnsupportedError{Feature: "departure times", Since: "Linux 4.6"}
		case err != nil:
			return fmt.Errorf("set so_timestamping: %w", err)
		}
	}
	return nil
}

// stampSpace is the room of a control message that asks for a departure time, a uint32.
var stampSpace = unix.CmsgSpace(4)

// stamp writes the control message that asks for a departure time.
func stamp(control []byte) {
	c := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	c.Level, c.Type = unix.SOL_SOCKET, unix.SO_TIMESTAMPING
	c.SetLen(unix.CmsgLen(4))
	*(*uint32)(unsafe.Pointer(&control[unix.CmsgLen(0)])) = unix.SOF_TIMESTAMPING_TX_SOFTWARE
}

// StampAtQueue makes [Outbox.Stamp] ask for the time at which a message enters the queue of the
// interface (TX_SCHED), and not for that at which the driver takes it (TX_SOFTWARE), which a few
// drivers do not report.
func (b *Outbox) StampAtQueue() {
	for i := range b.headers {
		*(*uint32)(unsafe.Pointer(&b.control[i*b.space+segmentSpace+unix.CmsgLen(0)])) = unix.SOF_TIMESTAMPING_TX_SCHED
	}
}

// Stamp asks for the departure time of message i, after [Outbox.Set]. The socket needs
// [SetSendTimes]. The kernel numbers the messages of a socket that were sent with such a mark. Of a
// message that it splits it reports the first datagram.
func (b *Outbox) Stamp(i int) {
	h := &b.headers[i].Hdr
	at := i * b.space
	if h.Control == nil {
		at += segmentSpace
		h.Control = &b.control[at]
		h.SetControllen(stampSpace)
		return
	}
	h.SetControllen(segmentSpace + stampSpace)
}

// Departures is an array of reports that one system call reads from the error queue of a socket.
// It allocates nothing after its making and is not safe for concurrent use.
type Departures struct {
	headers []unix.Mmsghdr
	control []byte
}

// departureControl is the room for a time, and for struct sock_extended_err with an IPv6 address.
var departureControl = unix.CmsgSpace(3*int(unsafe.Sizeof(unix.Timespec{}))) +
	unix.CmsgSpace(int(unsafe.Sizeof(unix.SockExtendedErr{}))+unix.SizeofSockaddrInet6)

// NewDepartures returns room for n reports.
func NewDepartures(n int) *Departures {
	d := &Departures{headers: make([]unix.Mmsghdr, n), control: make([]byte, n*departureControl)}
	for i := range d.headers {
		d.headers[i].Hdr.Control = &d.control[i*departureControl]
	}
	return d
}

// Receive reads the waiting reports and returns their number, 0 if there is none. It neither blocks
// nor notifies the Go scheduler.
func (d *Departures) Receive(fd int) int {
	for i := range d.headers {
		d.headers[i].Hdr.SetControllen(departureControl)
	}
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&d.headers[0])),
			uintptr(len(d.headers)), unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			return int(n)
		case unix.EINTR:
		default:
			return 0
		}
	}
}

// Report returns report i of the last Receive: the number of the marked message, and the realtime
// clock in nanoseconds when it left. It returns false for an entry that is none, such as an ICMP
// error.
func (d *Departures) Report(i int) (number uint32, at int64, ok bool) {
	control := d.control[i*departureControl : i*departureControl+min(int(d.headers[i].Hdr.Controllen), departureControl)]
	for len(control) >= unix.SizeofCmsghdr {
		c := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
		n := int(c.Len)
		if n < unix.CmsgLen(0) || n > len(control) {
			break // the kernel writes complete messages
		}
		data := control[unix.CmsgLen(0):n]
		switch {
		case c.Level == unix.SOL_SOCKET && c.Type == unix.SO_TIMESTAMPING &&
			len(data) >= int(unsafe.Sizeof(unix.Timespec{})):
			at = (*unix.Timespec)(unsafe.Pointer(&data[0])).Nano()
		case (c.Level == unix.IPPROTO_IP && c.Type == unix.IP_RECVERR ||
			c.Level == unix.IPPROTO_IPV6 && c.Type == unix.IPV6_RECVERR) &&
			len(data) >= int(unsafe.Sizeof(unix.SockExtendedErr{})):
			e := (*unix.SockExtendedErr)(unsafe.Pointer(&data[0]))
			ok = e.Origin == unix.SO_EE_ORIGIN_TIMESTAMPING &&
				(e.Info == unix.SCM_TSTAMP_SND || e.Info == unix.SCM_TSTAMP_SCHED)
			number = e.Data
		}
		control = control[min(unix.CmsgSpace(n-unix.CmsgLen(0)), len(control)):]
	}
	return number, at, ok && at > 0
}
