#: core
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

#: main
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
#: sysctl
get_sysctl() { [ -r "/proc/sys/$1" ] && squeeze <"/proc/sys/$1"; }
put_sysctl() { printf '%s\n' "$1" >"/proc/sys/$2"; }
#: file
# Of several words the one in brackets is in use.
get_file() { [ -r "$1" ] && squeeze <"$1" | sed 's/.*\[\([^]]*\)\].*/\1/'; }
put_file() { printf '%s\n' "$1" >"$2"; }
#: mask
get_mask() { [ -r "$1" ] && squeeze <"$1" | sed 's/^[0,]*//; s/^$/0/'; }
put_mask() { printf '%s\n' "$1" >"$2"; }
#: flag
get_flag() { [ -r "$1" ] && squeeze <"$1" | sed 's/^Y$/1/; s/^N$/0/'; }
put_flag() { printf '%s\n' "$1" >"$2"; }
#: ring
get_ring() {
	ethtool -g "$1" | WORD=$2: awk 'now && tolower($1) == ENVIRON["WORD"] && $2 ~ /^[0-9]+$/ { print $2; found = 1; exit }
		/^Current/ { now = 1 } END { exit !found }'
}
put_ring() { ethtool -G "$2" "$3" "$1"; }
#: channel
get_channel() {
	ethtool -l "$1" | WORD=$2: awk 'now && tolower($1) == ENVIRON["WORD"] && $2 ~ /^[0-9]+$/ { print $2; found = 1; exit }
		/^Current/ { now = 1 } END { exit !found }'
}
put_channel() { ethtool -L "$2" "$3" "$1"; }
#: moment
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
#: pause
get_pause() {
	ethtool -a "$1" | WORD=$2 awk '
		{ word = tolower($1); sub(/^autonegotiate:/, "autoneg:", word) }
		word == ENVIRON["WORD"] ":" && ($2 == "on" || $2 == "off") { print $2; found = 1; exit }
		END { exit !found }'
}
put_pause() { ethtool -A "$2" "$3" "$1"; }
#: eee
get_eee() {
	ethtool --show-eee "$1" | awk '/EEE status: *enabled/ { print "on"; found = 1 } /EEE status: *disabled/ { print "off"; found = 1 }
		END { exit !found }'
}
put_eee() { ethtool --set-eee "$2" eee "$1"; }
#: feature
get_feature() {
	ethtool -k "$1" | WORD=$3 awk '{ word = $1; sub(/:$/, "", word) } word == ENVIRON["WORD"] { print $2; found = 1; exit } END { exit !found }'
}
put_feature() { ethtool -K "$2" "$3" "$1"; }
#: private
get_private() {
	ethtool --show-priv-flags "$1" | WORD=$2 awk '{ at = match($0, / *: *(on|off)$/) }
		at && substr($0, 1, at - 1) == ENVIRON["WORD"] { print $NF; found = 1; exit } END { exit !found }'
}
put_private() { ethtool --set-priv-flags "$2" "$3" "$1"; }
#: tunable
get_tunable() { ethtool --get-tunable "$1" "$2" | awk '$2 ~ /^[0-9]+$/ { print $2; found = 1; exit } END { exit !found }'; }
put_tunable() { ethtool --set-tunable "$2" "$3" "$1"; }
#: link
get_link() {
	ip -d -o link show dev "$1" | WORD=$3 awk '{
		gsub(/\\/, " ")
		for (i = 1; i < NF; i++) if ($i == ENVIRON["WORD"]) { print $(i + 1); found = 1; exit }
		if (ENVIRON["WORD"] == "qlen") { print 0; found = 1 }
		exit
	} END { exit !found }'
}
put_link() { ip link set dev "$2" "$3" "$1"; }
#: route
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
#: qdisc
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
#: option
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
