package host

import (
	"context"
	"runtime"

	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/procfs"
)

// Snapshot reads the host as it is now. What could not be read is absent and has a sentence in
// Warnings. Snapshot returns an error only if the Root cannot be opened or ctx ends. Interfaces are
// in the order of their index, CPUs of their number, settings by name.
//
// A caller whose thread is in a network namespace of its own must have locked it
// (runtime.LockOSThread).
func (r Root) Snapshot(ctx context.Context) (*Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.live() && !hostfs.LiveSupported {
		return portableSnapshot(ctx), nil
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
	// What later readers depend on comes first: virtualization decides whether the figures of a bus
	// count, the architecture how addresses are printed.
	s := &Snapshot{OS: "linux", Time: src.time()}
	if s.Time.IsZero() {
		said.say("the archive has no time of its making (linerate/host.json)")
	}
	readIdentity(src, s, &said)
	s.CPUs = readCPUs(src, &said)
	s.Virtualization = virtualization(evidence{Text: src.Optional, Exists: src.Exists})
	s.Settings = readSettings(src, &said)

	// One dump for each family of facts, all before the first interface is read: as few moments as
	// possible.
	t := src.facts()
	s.Interfaces, err = readInterfaces(ctx, src, t, machine(src, s), &said)
	if err != nil {
		return nil, err
	}
	s.Routes = readRoutes(src, t, s.Arch, &said)
	s.Platform = readPlatform(src, s, &said)
	s.Warnings = said.sentences
	return s, nil
}

// readIdentity reads the host's names. The files of /proc/sys/kernel follow the UTS namespace of
// the reader, as uname(2) does.
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
	// Counters reports a failure, because it needs more of the file.
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

// goArch maps the machine names of uname(2) to GOARCH. The remaining names (riscv64, s390x,
// ppc64le, mips64) are equal.
var goArch = map[string]string{
	"x86_64": "amd64", "i386": "386", "i486": "386", "i586": "386", "i686": "386", "aarch64": "arm64", "armv6l": "arm",
	"armv7l":      "arm",
	"loongarch64": "loong64",
}

// readArch reads /proc/sys/kernel/arch (since Linux 6.1), or falls back to the archive's note or
// this build. Only the file reveals a 32-bit build on a 64-bit kernel.
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
