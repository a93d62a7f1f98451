package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestDiskRefuses: a test that cannot be meant is an error of usage, before anything is opened.
func TestDiskRefuses(t *testing.T) {
	for _, c := range []struct{ flags, want string }{
		{"--way=", "--way: a value is missing"},
		{"--way=direct,", "--way: a value is missing"},
		{"--test=", "--test: a value is missing"},
		{"--engine=", "--engine: a value is missing"},
		{"--sync=", "--sync: a value is missing"},
		{"--size=", "--size: a value is missing"},
		{"--rate=", "--rate: a value is missing"},
		{"--rate=0", "--rate 0: must be more than 0"},
		{"--rate=0MB/s", "--rate 0MB/s: must be more than 0"},
		{"--rate=-1MB/s", "--rate -1MB/s: must be more than 0"},
		{"--rate=nan", "--rate nan: write operations per second"},
		{"--depth=0", "--depth 0: must be more than 0"},
		{"--depth=-1", "-1 operations in flight are not within 1 and"},
		{"--duration=0s", "--duration 0s: must be more than 0"},
		{"--interval=0s", "--interval 0s: must be more than 0"},
		{"--block=0", "--block 0: must be more than 0"},
		{"--size=0", "--size 0: must be more than 0"},
		{"--size=100E", "--size: amount of bytes"},
	} {
		var f diskFlags
		cmd := &cobra.Command{}
		f.add(cmd)
		if err := cmd.ParseFlags(strings.Fields(c.flags)); err != nil {
			t.Fatal(err)
		}
		_, _, err := f.plan(cmd.Flags(), ".")
		if usage := (usageError{}); !errors.As(err, &usage) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.flags, err, c.want)
		}
	}
}

// TestSweepRefuses: so is a sweep, before the server is asked.
func TestSweepRefuses(t *testing.T) {
	for _, c := range []struct{ flags, want string }{
		{"--at=rel/ative", `--at "rel/ative": write the whole path`},
		{"--at=/", `--at "/": write the whole path`},
		{"--at=", "--at: a value is missing"},
		{"--at=/mnt/a\nb", `--at "/mnt/a\nb": write the whole path`},
		{"--options=ro,a b", `--options: option "a b": not a mount option`},
		{"--options=ro\nx", `--options: option "ro\nx": not a mount option`},
		{"--options==", `--options: option "=": not a mount option`},
		{"--options=rsize=0", "--options: option rsize=0: not within 1 and"},
		{"--options=wsize=-5", "--options: option wsize=-5: not within 1 and"},
		{"--options=rsize=x", "--options: option rsize=x: not a number"},
		{"--options=nconnect=99", "--options: option nconnect=99: not within 1 and 16"},
		{"--options=vers=9", `NFS version "9": not one of`},
		{"--options=vers=3 --nfs-version=4.2", "--nfs-version 4.2: --options has another version, 3"},
		{"--operation=write --factors=rsize", "--factors rsize: rsize is of reads, and the run only writes"},
		{"--operation=read --factors=rsize,wsize", "--factors rsize,wsize: wsize is of writes"},
		{"--nfs-version=4.2 --factors=proto", "--factors proto: NFS 4.2 requires tcp"},
		{"--factors=", "--factors: a value is missing"},
		{"--sizes=0", "--sizes 0: must be more than 0"},
		{"--port=0", "--port 0: must be more than 0"},
		{"--patience=0s", "--patience 0s: must be more than 0"},
		{"--patience=1000h", "--duration and --warm-up must be within the budget"},
		{"--duration=100h", "--duration and --warm-up must be within the budget"},
		{"--file=", "--file: a value is missing"},
		{"--file=../x", `--file "../x": give it relative to the export`},
	} {
		var f nfsTuneFlags
		cmd := &cobra.Command{}
		f.add(cmd)
		args := strings.Split(c.flags, " --")
		for i := range args[1:] {
			args[i+1] = "--" + args[i+1]
		}
		if err := cmd.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		_, _, err := f.plan(cmd.Flags(), "127.0.0.1:/x")
		if usage := (usageError{}); !errors.As(err, &usage) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.flags, err, c.want)
		}
	}
}
