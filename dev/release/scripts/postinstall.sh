#!/bin/sh
# After an installation or an upgrade of @PROGRAM@. It starts nothing: the administrator of the
# host decides which units run.
set -e
case "$1" in
abort-*) exit 0 ;; # dpkg restores what was there
esac
if [ -e /usr/lib/sysusers.d/@PROGRAM@.conf ]; then
	if command -v systemd-sysusers >/dev/null 2>&1; then
		systemd-sysusers @PROGRAM@.conf
	else
		# Without systemd no unit runs, and only the groups of the file are needed: g NAME -, without members.
		while read -r kind group _; do
			if [ "$kind" = g ] && ! grep -q "^$group:" /etc/group; then
				if command -v groupadd >/dev/null 2>&1; then
					groupadd --system "$group"
				elif command -v addgroup >/dev/null 2>&1; then
					addgroup -S "$group"
				else # a system of BusyBox without that tool
					gid=999
					while grep -q "^[^:]*:[^:]*:$gid:" /etc/group; do gid=$((gid - 1)); done
					echo "$group:x:$gid:" >>/etc/group
				fi
			fi
		done </usr/lib/sysusers.d/@PROGRAM@.conf
	fi
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
	for unit in @UNITS@; do
		case "$unit" in
		*@*) ;; # a template has no process of its own
		*) systemctl try-restart "$unit" || true ;; # a running unit gets the new program
		esac
	done
fi
