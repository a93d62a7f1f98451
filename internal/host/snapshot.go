package host

import (
	"context"
	"runtime"

	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/procfs"
)

// Snapshot reads the host as it is now. What could not be read is absent and has a sentence in
// Warnings. An error is returned only when the Root cannot be opened or ctx ends. Interfaces are in
// the order of their index, CPUs of their number, settings by name.
//
// A caller whose thread is in a network namespace of its own must have locked it
// (runtime.LockOSThread).
func (r Root) Snapshot(ctx context.Context) (*Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.live() && !hostfs.LiveSupported {
		return portableSnapshot(), nil
	}
	src, err := r.open()
	if err != nil {
		return nil, err
	}
	defer src.close()
	return src.snapshot(ctx)
}

func (src *source) snapshot(ctx context.Context) (*Snapshot, error) {
	var err error
	var said notes
	// What others go by comes first: virtualization decides what a bus is worth, the architecture
	// how addresses are printed.
	s := &Snapshot{OS: "linux", Time: src.time()}
	if s.Time.IsZero() {
		said.say("the archive does not say when it was taken (linerate/host.json)")
	}
	readIdentity(src, s, &said)
	s.CPUs = readCPUs(src, &said)
	s.Virtualization = virtualization(evidence{Text: src.Optional, Exists: src.Exists})
	s.Settings = readSettings(src, &said)

	// One dump for each family of facts, all before the first interface is looked at: so few
	// moments as possible.
	t := src.tell()
	s.Interfaces, err = readInterfaces(ctx, src, t, machine(src, s), &said)
	if err != nil {
		return nil, err
	}
	s.Routes = readRoutes(src, t, s.Arch, &said)
	s.Platform = readPlatform(src, s, &said)
	s.Warnings = said.sentences
	return s, nil
}

// readIdentity reads who the host is. The files of /proc/sys/kernel follow the UTS namespace of the
// reader, as uname(2) does.
func readIdentity(src *source, s *Snapshot, said *notes) {
	var err error
	if s.Name, err = src.Text("proc/sys/kernel/hostname"); err != nil {
		said.add("host name", err)
	}
	if s.Kernel, err = src.Text("proc/sys/kernel/osrelease"); err != nil {
		said.add("kernel release", err)
	}
	if s.BootID, err = src.Text("proc/sys/kernel/random/boot_id"); err != nil && src.Live() {
		said.add("boot id", err)
	}
	s.Arch = readArch(src)
	// A failure is for Counters to tell, which needs more of the file than this.
	if stat, err := src.Read("proc/stat"); err == nil {
		s.BootTime, _ = procfs.ParseBootTime(stat)
	}
	b, err := src.Read("proc/meminfo")
	if err == nil {
		s.MemoryBytes, err = procfs.ParseMemTotal(b)
	}
	if err != nil {
		said.add("memory", err)
	}
}

// goArch turns the machine names of uname(2) into the words of GOARCH. The others (riscv64, s390x,
// ppc64le, mips64) are the same in both.
var goArch = map[string]string{
	"x86_64": "amd64", "i386": "386", "i486": "386", "i586": "386", "i686": "386", "aarch64": "arm64", "armv6l": "arm",
	"armv7l":      "arm",
	"loongarch64": "loong64",
}

// readArch reads /proc/sys/kernel/arch (since Linux 6.1), else believes the archive's note or our
// own build. A 32-bit build on a 64-bit kernel is told apart by the file only.
func readArch(src *source) string {
	if machine := src.Optional("proc/sys/kernel/arch"); machine != "" {
		if word, ok := goArch[machine]; ok {
			return word
		}
		return machine
	}
	if src.Live() {
		return runtime.GOARCH
	}
	return src.hostFile().Arch
}
