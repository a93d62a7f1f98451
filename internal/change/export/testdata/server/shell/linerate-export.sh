#!/bin/sh
# Settings for other hosts, a shell script, written by linerate v0.1.0
# Proven on db1 (Linux 6.1.0-18-amd64 amd64), 2026-11-22, for throughput to 192.0.2.7:
#   all of it together, with changes at the other end (1), brought x3.97 (x3.91 to x4.03 at 95 %, 10 pairs)
#   if1 was the interface eth1.100, driver 8021q
#   if2 was the interface eth0, driver e1000e
#
# sysctl:net.ipv4.tcp_rmem: TCP receive buffer: minimum, start, maximum
#   4096 131072 6291456 -> 4096 131072 33554432, change 0001, alone x3.91 (x3.84 to x3.98 at 95 %, 6 pairs)
#   because: receive-window-limited
# sysctl:net.ipv4.conf.eth1/100.rp_filter: Check the way back of an arriving packet
#   1 -> 2, change 0002
# sysctl:net.core.netdev_max_backlog: Packets waiting for one CPU
#   1000 -> 4000, change 0003, alone x1.02 (interval not known)
# link:eth0/mtu: MTU of an interface
#   1500 -> 9000, change 0004
# link:eth0/txqueuelen: Transmit queue length of an interface
#   1000 -> 2000, change 0005
# link:eth0/threaded: Poll the queues in kernel threads
#   0 -> 1, change 0006
# ethtool:eth0/ring.rx: Receive ring
#   256 -> 4096, change 0007
# ethtool:eth0/ring.tx: Transmit ring
#   256 -> 1024, change 0008
# ethtool:eth0/channels.combined: Queues for both directions
#   1 -> 4, change 0009
# ethtool:eth0/coalesce.rx-usecs: Wait before a receive interrupt
#   3 -> 50, change 0010
# ethtool:eth0/coalesce.adaptive-rx: Adaptive receive moderation
#   on -> off, change 0011
# ethtool:eth0/pause.rx: Stop sending when the other end asks
#   on -> off, change 0012
# ethtool:eth0/eee: Energy-Efficient Ethernet
#   on -> off, change 0013
# ethtool:eth0/feature.rx-gro: Merge received packets (GRO)
#   off -> on, change 0014
# ethtool:eth0/feature.tx-tcp-segmentation: TCP segmentation in the NIC (TSO)
#   off -> on, change 0015
# ethtool:eth0/flag.legacy rx: Private flag of a driver
#   on -> off, change 0016
# ethtool:eth0/tunable.rx-copybreak: Received packets that are copied
#   256 -> 0, change 0017
# queue:eth0/rx-0/rps_cpus: CPUs that process packets of a receive queue (RPS)
#   0 -> f, change 0019
# queue:eth0/tx-0/bql_limit_max: Upper end of the byte queue limit
#   1879048192 -> 500000, change 0020
# qdisc:eth0/root: Queueing discipline of an interface
#   pfifo_fast -> fq, change 0021
# qdisc:eth0/fq.flow_limit: Packets of one flow in fq
#   100 -> 400, change 0022
# route:default/initcwnd: Initial congestion window of a route
#   0 -> 30, change 0024
# route:2001:db8::/32/congctl: Congestion control of a route
#   none -> bbr, change 0025
# cpu:3/scaling_governor: Frequency governor of a CPU
#   powersave -> performance, change 0028
# module:tcp_cubic/hystart: CUBIC leaves slow start early (HyStart)
#   1 -> 0, change 0031
# block:sda/read_ahead_kb: Read-ahead of a disk
#   128 -> 4096, change 0033
#
# Left out:
#   ethtool:eth0/rss.function = xor: it depends on the queues that the card of one host has
#   qdisc:eth0/fq.maxrate = 1000000: tc prints it in other units than it takes; by hand: tc qdisc change dev eth0 root fq maxrate VALUE
#   route:10.0.0.0/8/rto_min = 20: ip route prints it in a form that it does not take; by hand: ip route change ROUTE rto_min 20
#   irq:45/affinity = 2: interrupts have other numbers on every host and after every start
#   nfs:/mnt/data/rsize = 1048576: it is an option of a mount; by hand: mount option rsize=1048576 in /etc/fstab
#   pci:0000:03:00.0/l1_aspm = 0: a PCI address names a slot of one machine
#   module:e1000/InterruptThrottleRate = 8000: it holds when the module is loaded; by hand: options e1000 InterruptThrottleRate=8000 in a file of /etc/modprobe.d
#   module:e1000/RxIntDelay = 8: it holds when the module is loaded; by hand: options e1000 RxIntDelay=8 in a file of /etc/modprobe.d
#   module:intel_idle/max_cstate = 1: it holds when the kernel starts; by hand: intel_idle.max_cstate=1 on the kernel's command line
#
# CAUTION: it was proven there, under that load and on that path, and not on the host that reads this.
# Measure before and after (linerate measure), or let linerate tune prove it here as well.
#
# linerate-export apply | check | undo; see --help.
set -eu

if1=${LINERATE_IF1:-${TUNED_if1:-}}
[ -n "$if1" ] || if1=eth1.100

if2=${LINERATE_IF2:-${TUNED_if2:-}}
[ -n "$if2" ] || if2=eth0

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

get_link() {
	ip -d -o link show dev "$1" | WORD=$3 awk '{
		gsub(/\\/, " ")
		for (i = 1; i < NF; i++) if ($i == ENVIRON["WORD"]) { print $(i + 1); found = 1; exit }
		if (ENVIRON["WORD"] == "qlen") { print 0; found = 1 }
		exit
	} END { exit !found }'
}
put_link() { ip link set dev "$2" "$3" "$1"; }

# Of several words the one in brackets is in use.
get_file() { [ -r "$1" ] && squeeze <"$1" | sed 's/.*\[\([^]]*\)\].*/\1/'; }
put_file() { printf '%s\n' "$1" >"$2"; }

get_ring() {
	ethtool -g "$1" | WORD=$2: awk 'now && tolower($1) == ENVIRON["WORD"] && $2 ~ /^[0-9]+$/ { print $2; found = 1; exit }
		/^Current/ { now = 1 } END { exit !found }'
}
put_ring() { ethtool -G "$2" "$3" "$1"; }

get_channel() {
	ethtool -l "$1" | WORD=$2: awk 'now && tolower($1) == ENVIRON["WORD"] && $2 ~ /^[0-9]+$/ { print $2; found = 1; exit }
		/^Current/ { now = 1 } END { exit !found }'
}
put_channel() { ethtool -L "$2" "$3" "$1"; }

# ethtool shows some of them as rx-frame-low and takes rx-frames-low.
get_moment() {
	ethtool -c "$1" | sed 's/^\([rt]x\)-frame-/\1-frames-/' | WORD=$2 awk '
		function report(v) { if (v == "n/a" || v == "") exit; print v; found = 1; exit }
		/^Adaptive RX:/ && ENVIRON["WORD"] == "adaptive-rx" { report($3) }
		/^Adaptive RX:/ && ENVIRON["WORD"] == "adaptive-tx" { report($5) }
		/^CQE mode RX:/ && ENVIRON["WORD"] == "cqe-mode-rx" { report($4) }
		/^CQE mode RX:/ && ENVIRON["WORD"] == "cqe-mode-tx" { report($6) }
		$1 == ENVIRON["WORD"] ":" { report($2) }
		END { exit !found }'
}
put_moment() { ethtool -C "$2" "$3" "$1"; }

get_pause() {
	ethtool -a "$1" | WORD=$2 awk '
		{ word = tolower($1); sub(/^autonegotiate:/, "autoneg:", word) }
		word == ENVIRON["WORD"] ":" && ($2 == "on" || $2 == "off") { print $2; found = 1; exit }
		END { exit !found }'
}
put_pause() { ethtool -A "$2" "$3" "$1"; }

get_eee() {
	ethtool --show-eee "$1" | awk '/EEE status: *enabled/ { print "on"; found = 1 } /EEE status: *disabled/ { print "off"; found = 1 }
		END { exit !found }'
}
put_eee() { ethtool --set-eee "$2" eee "$1"; }

get_feature() {
	ethtool -k "$1" | WORD=$3 awk '{ word = $1; sub(/:$/, "", word) } word == ENVIRON["WORD"] { print $2; found = 1; exit } END { exit !found }'
}
put_feature() { ethtool -K "$2" "$3" "$1"; }

get_private() {
	ethtool --show-priv-flags "$1" | WORD=$2 awk '{ at = match($0, / *: *(on|off)$/) }
		at && substr($0, 1, at - 1) == ENVIRON["WORD"] { print $NF; found = 1; exit } END { exit !found }'
}
put_private() { ethtool --set-priv-flags "$2" "$3" "$1"; }

get_tunable() { ethtool --get-tunable "$1" "$2" | awk '$2 ~ /^[0-9]+$/ { print $2; found = 1; exit } END { exit !found }'; }
put_tunable() { ethtool --set-tunable "$2" "$3" "$1"; }

get_mask() { [ -r "$1" ] && squeeze <"$1" | sed 's/^[0,]*//; s/^$/0/'; }
put_mask() { printf '%s\n' "$1" >"$2"; }

get_qdisc() {
	tc qdisc show dev "$1" | awk '$1 == "qdisc" { for (i = 3; i <= NF; i++) if ($i == "root") { print $2; found = 1; exit } } END { exit !found }'
}
# Some kinds are what the kernel itself puts where nothing is.
put_qdisc() {
	case $1 in
	mq | noqueue | pfifo_fast)
		tc qdisc del dev "$2" root 2>/dev/null || :
		[ "$(get_qdisc "$2")" != "$1" ] || return 0
		;;
	esac
	tc qdisc replace dev "$2" root "$1"
}

# A root of another kind has no such option. It is not replaced for the sake of one.
get_option() {
	tc qdisc show dev "$1" | KIND=$2 WORD=$3 awk '$1 == "qdisc" {
		root = 0
		for (i = 3; i < NF; i++) {
			if ($i == "root") root = 1
			if (root && $2 == ENVIRON["KIND"] && $i == ENVIRON["WORD"]) { value = $(i + 1); sub(/p$/, "", value); print value; found = 1; exit }
		}
		if (root) { print "none"; found = 1; exit }
	} END { exit !found }'
}
put_option() {
	if [ "$now" = none ]; then
		echo "the root is no $3"
		return 1
	fi
	tc qdisc replace dev "$2" root "$3" "$4" "$1"
}

# Of several routes to one destination the first is in use.
get_route() {
	ip -o "$3" route show table main "$1" | WORD=$2 awk 'NR == 1 {
		gsub(/\\/, " ")
		value = ENVIRON["WORD"] == "congctl" ? "none" : 0
		for (i = 1; i < NF; i++) if ($i == ENVIRON["WORD"]) value = $(i + 1) == "lock" ? $(i + 2) : $(i + 1)
		print value
		found = 1
	} END { exit !found }'
}
put_route() {
	value=$1 metric=$3 family=$4
	route=$(ip -o "$family" route show table main "$2" | WORD=$metric awk 'NR == 1 {
		gsub(/\\/, " ")
		for (i = 1; i <= NF; i++) {
			if ($i == ENVIRON["WORD"]) { i++; if ($i == "lock") i++; continue }
			if ($i == "expires") { i++; continue }
			if ($i ~ /^(linkdown|dead|offload|rt_offload|trap|rt_trap)$/) continue
			printf "%s ", $i
		}
	}')
	[ -n "$route" ] || return 1
	case $value in 0 | none) ;; *) route="$route $metric $value" ;; esac
	set -f
	# Words of the route, as ip printed them.
	set -- $route
	set +f
	ip "$family" route change "$@"
}

get_flag() { [ -r "$1" ] && squeeze <"$1" | sed 's/^Y$/1/; s/^N$/0/'; }
put_flag() { printf '%s\n' "$1" >"$2"; }

changes() {
	one "$1" sysctl:net.ipv4.tcp_rmem '4096 131072 33554432' sysctl net/ipv4/tcp_rmem
	one "$1" sysctl:net.ipv4.conf."$if1".rp_filter 2 sysctl net/ipv4/conf/"$if1"/rp_filter
	one "$1" sysctl:net.core.netdev_max_backlog 4000 sysctl net/core/netdev_max_backlog
	one "$1" link:"$if2"/mtu 9000 link "$if2" mtu mtu
	one "$1" link:"$if2"/txqueuelen 2000 link "$if2" txqueuelen qlen
	one "$1" link:"$if2"/threaded 1 file /sys/class/net/"$if2"/threaded
	one "$1" ethtool:"$if2"/ring.rx 4096 ring "$if2" rx
	one "$1" ethtool:"$if2"/ring.tx 1024 ring "$if2" tx
	one "$1" ethtool:"$if2"/channels.combined 4 channel "$if2" combined
	one "$1" ethtool:"$if2"/coalesce.rx-usecs 50 moment "$if2" rx-usecs
	one "$1" ethtool:"$if2"/coalesce.adaptive-rx off moment "$if2" adaptive-rx
	one "$1" ethtool:"$if2"/pause.rx off pause "$if2" rx
	one "$1" ethtool:"$if2"/eee off eee "$if2"
	one "$1" ethtool:"$if2"/feature.rx-gro on feature "$if2" rx-gro generic-receive-offload
	one "$1" ethtool:"$if2"/feature.tx-tcp-segmentation on feature "$if2" tx-tcp-segmentation tx-tcp-segmentation
	one "$1" ethtool:"$if2"'/flag.legacy rx' off private "$if2" 'legacy rx'
	one "$1" ethtool:"$if2"/tunable.rx-copybreak 0 tunable "$if2" rx-copybreak
	one "$1" queue:"$if2"/rx-0/rps_cpus f mask /sys/class/net/"$if2"/queues/rx-0/rps_cpus
	one "$1" queue:"$if2"/tx-0/bql_limit_max 500000 file /sys/class/net/"$if2"/queues/tx-0/byte_queue_limits/limit_max
	one "$1" qdisc:"$if2"/root fq qdisc "$if2"
	one "$1" qdisc:"$if2"/fq.flow_limit 400 option "$if2" fq flow_limit
	one "$1" route:default/initcwnd 30 route default initcwnd -4
	one "$1" route:2001:db8::/32/congctl bbr route 2001:db8::/32 congctl -6
	one "$1" cpu:3/scaling_governor performance file /sys/devices/system/cpu/cpu3/cpufreq/scaling_governor
	one "$1" module:tcp_cubic/hystart 0 flag /sys/module/tcp_cubic/parameters/hystart
	one "$1" block:sda/read_ahead_kb 4096 file /sys/block/sda/queue/read_ahead_kb
}

changes_backwards() {
	one "$1" block:sda/read_ahead_kb 4096 file /sys/block/sda/queue/read_ahead_kb
	one "$1" module:tcp_cubic/hystart 0 flag /sys/module/tcp_cubic/parameters/hystart
	one "$1" cpu:3/scaling_governor performance file /sys/devices/system/cpu/cpu3/cpufreq/scaling_governor
	one "$1" route:2001:db8::/32/congctl bbr route 2001:db8::/32 congctl -6
	one "$1" route:default/initcwnd 30 route default initcwnd -4
	one "$1" qdisc:"$if2"/fq.flow_limit 400 option "$if2" fq flow_limit
	one "$1" qdisc:"$if2"/root fq qdisc "$if2"
	one "$1" queue:"$if2"/tx-0/bql_limit_max 500000 file /sys/class/net/"$if2"/queues/tx-0/byte_queue_limits/limit_max
	one "$1" queue:"$if2"/rx-0/rps_cpus f mask /sys/class/net/"$if2"/queues/rx-0/rps_cpus
	one "$1" ethtool:"$if2"/tunable.rx-copybreak 0 tunable "$if2" rx-copybreak
	one "$1" ethtool:"$if2"'/flag.legacy rx' off private "$if2" 'legacy rx'
	one "$1" ethtool:"$if2"/feature.tx-tcp-segmentation on feature "$if2" tx-tcp-segmentation tx-tcp-segmentation
	one "$1" ethtool:"$if2"/feature.rx-gro on feature "$if2" rx-gro generic-receive-offload
	one "$1" ethtool:"$if2"/eee off eee "$if2"
	one "$1" ethtool:"$if2"/pause.rx off pause "$if2" rx
	one "$1" ethtool:"$if2"/coalesce.adaptive-rx off moment "$if2" adaptive-rx
	one "$1" ethtool:"$if2"/coalesce.rx-usecs 50 moment "$if2" rx-usecs
	one "$1" ethtool:"$if2"/channels.combined 4 channel "$if2" combined
	one "$1" ethtool:"$if2"/ring.tx 1024 ring "$if2" tx
	one "$1" ethtool:"$if2"/ring.rx 4096 ring "$if2" rx
	one "$1" link:"$if2"/threaded 1 file /sys/class/net/"$if2"/threaded
	one "$1" link:"$if2"/txqueuelen 2000 link "$if2" txqueuelen qlen
	one "$1" link:"$if2"/mtu 9000 link "$if2" mtu mtu
	one "$1" sysctl:net.core.netdev_max_backlog 4000 sysctl net/core/netdev_max_backlog
	one "$1" sysctl:net.ipv4.conf."$if1".rp_filter 2 sysctl net/ipv4/conf/"$if1"/rp_filter
	one "$1" sysctl:net.ipv4.tcp_rmem '4096 131072 33554432' sysctl net/ipv4/tcp_rmem
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
