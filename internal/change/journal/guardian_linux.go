package journal

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// processStarted returns the start of a process in clock ticks since boot. The error matches
// fs.ErrNotExist when there is none, or one that is gone for good.
func processStarted(pid int) (ticks uint64, err error) {
	fields, err := processFields(pid)
	if err != nil {
		return 0, err
	}
	if gone(fields) {
		return 0, &os.PathError{Op: "look at", Path: "process " + strconv.Itoa(pid), Err: os.ErrNotExist}
	}
	return strconv.ParseUint(string(fields[19]), 10, 64)
}

// gone reports whether a process keeps no deadline. Of a zombie (Z, X) only the exit status is
// left. One whose memory is gone (vsize) runs no code of its own, and is a zombie in a moment: the
// kernel gives up memory first (exit_mm), on a busy machine long before. One that a signal stopped
// (T) is as good as gone, and one that a debugger holds (t) goes on in a moment.
func gone(fields [][]byte) bool {
	state, vsize := fields[0][0], string(fields[20])
	return state == 'Z' || state == 'X' || state == 'T' || vsize == "0"
}

// processWork returns the processor time of a process in clock ticks: 0 when it is unknown.
func processWork(pid int) (ticks uint64) {
	fields, err := processFields(pid)
	if err != nil {
		return 0
	}
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.ParseUint(string(field), 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return ticks
}

// processFields returns what afterName returns of a process. vsize, field 23, is there.
func processFields(pid int) ([][]byte, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil, err
	}
	fields := afterName(data)
	if len(fields) < 21 {
		return nil, fmt.Errorf("read /proc/%d/stat: %d fields", pid, len(fields))
	}
	return fields, nil
}

// afterName returns the fields of proc_pid_stat(5) behind the name, which may hold anything. The
// state, field 3, is the first.
func afterName(stat []byte) [][]byte { return bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) }

// pidNamespace names the PID namespace of this process, or returns "".
func pidNamespace() string {
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return name
}
