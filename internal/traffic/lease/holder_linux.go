package lease

import (
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// holder says which process listens at a socket: the kernel knows it since it listened (unix(7),
// SO_PEERCRED), and no process can say another one. The connection stays in the queue of a holder
// that accepts none, so this is asked once for each refusal.
func holder(socket string) owner {
	c, err := (&net.Dialer{Timeout: time.Second}).Dial("unix", socket)
	if err != nil {
		return owner{} // it is free again, or its queue is full
	}
	defer c.Close()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return owner{}
	}
	var who *unix.Ucred
	failed := raw.Control(func(fd uintptr) {
		who, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if failed != nil || err != nil {
		return owner{}
	}
	if who.Pid == 0 { // of another namespace of processes
		return owner{true, int(who.Uid), fmt.Sprintf("a process of user %d has it", who.Uid)}
	}
	return owner{true, int(who.Uid), fmt.Sprintf("process %d of user %d has it", who.Pid, who.Uid)}
}
