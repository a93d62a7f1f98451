#!/bin/sh
# After @PROGRAM@ has gone. The state stays, also with dpkg --purge: the journal is the only record of
# old values while a change is in force.
case "$1" in
upgrade | failed-upgrade | abort-* | disappear | 1 | 2) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
if [ -d /var/lib/@PROGRAM@ ]; then
	echo "@PROGRAM@: /var/lib/@PROGRAM@ stays; remove it by hand when you no longer need it."
fi
exit 0
