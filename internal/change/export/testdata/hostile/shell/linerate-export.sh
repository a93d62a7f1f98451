#!/bin/sh
# Settings for other hosts, a shell script, written by linerate */ ''
# Proven on db1?- name: pwned?[2J (Linux 6.1'"${x} a b), for ''${builtins.abort "x"} to {{ lookup('pipe','id') }}?[main]:
#   all of it together brought x2 (interval not known)
#   if1 was the interface $(id)'"`, driver e?1000
#
# sysctl:net.ipv4.tcp_congestion_control: Congestion control of new connections
#   cubic -> x';id;'$(id)`id`"{{id}}''${id}\, change 1?2
# sysctl:net.ipv4.conf.$(id)'"`.rp_filter: Check the way back of an arriving packet
#   0 -> 1
#   because: EOF?]]>
# ethtool:$(id)'"`/ring.rx: Receive ring
#   1 -> 2'"; $(id)
#
# Left out:
#   ethtool:eth0/feature.--help = on: a tool would take a part of it for an option
#   link:-x/mtu = 9000: a tool would take a part of it for an option
#   link:eth0/mtu = --help: a tool would take a part of it for an option
#   sysctl:net.ipv4.tcp_mem = 1 2 3?id: its value is not text on one line
#   sysctl:net/ipv4/../../../etc/passwd = 2: no setting has this name
#   no such thing = 2: no setting has this name
#   module:../x/y = 2: no setting has this name
#   module:e1000/RxIntDelay = 2 install e1000 /bin/sh: modprobe.d has no way to quote it
#   block:../../x/read_ahead_kb = 2: no format has a form for it
#   queue:eth0/../rps_cpus = 2: no setting has this name
#
# CAUTION: it was proven there, under that load and on that path, and not on the host that reads this.
# Measure before and after (linerate measure), or let linerate tune prove it here as well.
#
# linerate-export apply | check | undo; see --help.
set -eu

if1=${LINERATE_IF1:-${TUNED_if1:-}}
[ -n "$if1" ] || if1='$(id)'\''"`'

LC_ALL=C
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export LC_ALL PATH
umask 077
saved=${LINERATE_SAVED:-/var/lib/linerate-export}
boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null || echo unknown)
changed=0 differs=0 foreign=0 failed=0

complain() { printf 'linerate-export: %s\n' "$*" >&2; }

squeeze() { tr -s '[:space:]' ' ' | sed 's/^ //; s/ $//'; }

# record and recall keep the state of a setting: boot, old value, requested value, resulting value. The first old value of a boot stays:
# a second run must not mistake its own value for the original.
record() {
	mkdir -p "$saved" && printf '%s\n' "$boot" "$1" "$2" "$3" >"$saved/$key.new" && mv "$saved/$key.new" "$saved/$key"
}

recall() {
	old='' asked='' held=''
	[ -f "$saved/$key" ] || return 1
	{ read -r when && read -r old && read -r asked && read -r held; } <"$saved/$key" || return 1
	if [ "$when" != "$boot" ]; then
		rm -f "$saved/$key"
		return 1
	fi
}

# one VERB KNOB WANT WAY ARGUMENT... applies, checks or undoes one setting.
one() {
	verb=$1 knob=$2 want=$3 way=$4
	shift 4
	key=$(printf '%s ' "$way" "$@" | tr -c 'A-Za-z0-9.-' _)$(printf '%s ' "$way" "$@" | cksum | cut -d ' ' -f 1)
	if ! now=$("get_$way" "$@" 2>/dev/null); then
		complain "read $knob: this host does not have it, or does not show it"
		failed=$((failed + 1))
		return 0
	fi
	"${verb}_one" "$@"
}

apply_one() {
	if [ "$now" = "$want" ] || { recall && [ "$asked" = "$want" ] && [ "$held" = "$now" ]; }; then
		printf 'ok %s: %s\n' "$knob" "$now"
		return 0
	fi
	recall || old=$now
	if ! record "$old" "$want" "$want"; then
		complain "write $knob: $saved cannot hold the old value; nothing changed"
		failed=$((failed + 1))
		return 0
	fi
	said=$("put_$way" "$want" "$@" 2>&1) || :
	held=$("get_$way" "$@" 2>/dev/null) || held='?'
	record "$old" "$want" "$held" || :
	if [ "$held" = "$now" ]; then
		complain "write $knob: requested $want, still $now${said:+ ($said)}"
		[ "$now" != "$old" ] || rm -f "$saved/$key"
		failed=$((failed + 1))
		return 0
	fi
	changed=$((changed + 1))
	if [ "$held" = "$want" ]; then
		printf 'changed %s: %s -> %s\n' "$knob" "$now" "$held"
	else
		printf 'changed %s: %s -> %s, where %s was requested\n' "$knob" "$now" "$held" "$want"
	fi
}

check_one() {
	if [ "$now" = "$want" ] || { recall && [ "$asked" = "$want" ] && [ "$held" = "$now" ]; }; then
		printf 'ok %s: %s\n' "$knob" "$now"
		return 0
	fi
	printf 'differs %s: %s, not %s\n' "$knob" "$now" "$want"
	differs=$((differs + 1))
}

undo_one() {
	if ! recall; then
		printf 'nothing saved for %s\n' "$knob"
		return 0
	fi
	if [ "$now" != "$old" ] && [ "$now" != "$held" ] && [ "$now" != "$asked" ]; then
		complain "undo $knob: another program set it to $now; left alone"
		foreign=$((foreign + 1))
		rm -f "$saved/$key"
		return 0
	fi
	if [ "$now" != "$old" ]; then
		said=$("put_$way" "$old" "$@" 2>&1) || :
		now=$("get_$way" "$@" 2>/dev/null) || now='?'
	fi
	if [ "$now" != "$old" ]; then
		complain "undo $knob: still $now, not $old${said:+ ($said)}"
		failed=$((failed + 1))
		return 0
	fi
	rm -f "$saved/$key"
	printf 'back %s: %s\n' "$knob" "$old"
}

usage() {
	cat <<'END'
usage: linerate-export [apply | check | undo]

apply   set the values and save the previous ones; the default
check   show the differences; change nothing
undo    restore the previous values, last setting first; a value that
        another program has changed meanwhile stays as it is

The settings last until the host restarts, unless this runs at every start.

EXIT STATUS
  0 done, 2 usage, 3 partly or not done, 4 check: a value differs
END
}

finish() {
	if [ "$failed" -gt 0 ] || [ "$foreign" -gt 0 ]; then
		exit 3
	fi
	if [ "$differs" -gt 0 ]; then
		exit 4
	fi
	exit 0
}

get_sysctl() { [ -r "/proc/sys/$1" ] && squeeze <"/proc/sys/$1"; }
put_sysctl() { printf '%s\n' "$1" >"/proc/sys/$2"; }

get_ring() {
	ethtool -g "$1" | WORD=$2: awk 'now && tolower($1) == ENVIRON["WORD"] && $2 ~ /^[0-9]+$/ { print $2; found = 1; exit }
		/^Current/ { now = 1 } END { exit !found }'
}
put_ring() { ethtool -G "$2" "$3" "$1"; }

changes() {
	one "$1" sysctl:net.ipv4.tcp_congestion_control 'x'\'';id;'\''$(id)`id`"{{id}}'\'''\''${id}\' sysctl net/ipv4/tcp_congestion_control
	one "$1" sysctl:net.ipv4.conf."$if1".rp_filter 1 sysctl net/ipv4/conf/"$if1"/rp_filter
	one "$1" ethtool:"$if1"/ring.rx '2'\''"; $(id)' ring "$if1" rx
}

changes_backwards() {
	one "$1" ethtool:"$if1"/ring.rx '2'\''"; $(id)' ring "$if1" rx
	one "$1" sysctl:net.ipv4.conf."$if1".rp_filter 1 sysctl net/ipv4/conf/"$if1"/rp_filter
	one "$1" sysctl:net.ipv4.tcp_congestion_control 'x'\'';id;'\''$(id)`id`"{{id}}'\'''\''${id}\' sysctl net/ipv4/tcp_congestion_control
}

case ${1:-apply} in
apply | start) changes apply ;;
check | verify) changes check ;;
undo | stop) changes_backwards undo ;;
help | --help | -h)
	usage
	exit 0
	;;
*)
	complain "$1: not one of apply, check, undo"
	exit 2
	;;
esac
finish
