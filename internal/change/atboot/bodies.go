package atboot

// bodies are the files after their first line.
//
// Before systemd-sysctl and network-pre: files of an unfinished change must be removed before
// another program reads them. The unit waits for udev, which read .link files and rules before
// disks were mounted: a NIC that came up only after recovery would get a value whose change is
// over. The unit may write where a change may have written, and where knobs are; nothing more: in
// /etc, and where name servers have their configuration, which mostly belongs to another group.
// AF_INET is for a socket that ioctls of NICs use; it makes no connections. Status 3 means that a
// value was left alone because another program had changed it, which is not a failure of the start.
var bodies = map[Init]string{
	Systemd: `[Unit]
Description=Finish linerate's changes that a crash interrupted
DefaultDependencies=no
After=local-fs.target systemd-udev-trigger.service
Before=systemd-sysctl.service network-pre.target sysinit.target shutdown.target
Wants=network-pre.target
Conflicts=shutdown.target
RequiresMountsFor=@STATE@
ConditionPathExists=@STATE@/journal.log

[Service]
Type=oneshot
ExecStartPre=-udevadm settle --timeout=30
ExecStart=@COMMAND@
SuccessExitStatus=3
TimeoutStartSec=90
Environment=NO_COLOR=1
ProtectSystem=strict
ReadWritePaths=@STATE@ /etc -/usr/local/etc -/opt -/var/named -/var/lib/named -/var/lib/unbound
ProtectHome=read-only
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectClock=yes
ProtectHostname=yes
NoNewPrivileges=yes
CapabilityBoundingSet=CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER CAP_NET_ADMIN CAP_SYS_ADMIN
RestrictAddressFamilies=AF_NETLINK AF_UNIX AF_INET
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native

[Install]
WantedBy=sysinit.target
`,
	SysV: `### BEGIN INIT INFO
# Provides:          linerate-recover
# Required-Start:    $local_fs
# Required-Stop:
# X-Start-Before:    procps networking
# Default-Start:     S
# Default-Stop:
# Short-Description: Finish linerate's changes that a crash interrupted
### END INIT INFO

case "${1:-}" in
start)
	[ -e @STATE@/journal.log ] && [ -x @PROGRAM@ ] || exit 0
	@COMMAND@
	status=$?
	# 3: linerate did not undo a setting that another program had changed.
	[ "$status" -eq 3 ] && exit 0
	exit "$status"
	;;
stop | restart | force-reload | status) ;;
*)
	echo "usage: $0 start" >&2
	exit 2
	;;
esac
`,
	OpenRC: `
description="Finish linerate's changes that a crash interrupted"

depend() {
	need localmount
	before net sysctl
	keyword -timeout
}

start() {
	[ -e @STATE@/journal.log ] && [ -x @PROGRAM@ ] || return 0
	ebegin "Finishing linerate's changes that a crash interrupted"
	@COMMAND@
	status=$?
	# 3: linerate did not undo a setting that another program had changed.
	[ "$status" -eq 3 ] && status=0
	eend "$status"
}
`,
}
