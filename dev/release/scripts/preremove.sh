#!/bin/sh
# Before @PROGRAM@ goes. dpkg passes a word, rpm the number of versions that stay, apk a version. An
# upgrade keeps everything: guards of trials run on with the old program, and the new one reads the
# journal of the old.
set -e
case "$1" in
upgrade | failed-upgrade | deconfigure | 1 | 2) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	for unit in @UNITS@; do
		case "$unit" in
		*@*) ;;
		*) systemctl --no-reload disable --now "$unit" || true ;;
		esac
	done
fi
[ @PROGRAM@ = linerate ] || exit 0
# Trials are watched by guards, which are this program; the unit of recovery starts it. Both end here.
if [ -e /etc/systemd/system/linerate-recover.service ] || [ -e /etc/init.d/linerate-recover ]; then
	/usr/bin/linerate recover --uninstall || true
fi
status=0
/usr/bin/linerate recover --before-removal || status=$?
if [ "$status" = 11 ]; then
	echo "linerate stays installed: another linerate is changing this host. End it, then remove the package again." >&2
	exit 1
fi
exit 0
