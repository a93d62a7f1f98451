# A fleet in network namespaces: a hub, and three hosts with agent --orders and a node each. fleet.sh and cosign.sh read this
# file; the programs linerate and linerate-hub are in PATH. The namespaces (unshare --net --mount --pid --fork) end with it.
set -eu
cd "$1"
mount -t tmpfs tmpfs /run
mount -t proc proc /proc
mkdir /run/netns
export HOME="$PWD" XDG_CONFIG_HOME="$PWD/person"
unset LINERATE_STATE XDG_STATE_HOME 2>/dev/null || :
ip link set lo up
ip link add br0 type bridge
ip address add 10.9.0.1/24 dev br0
ip link set br0 up
step() { echo "== $*"; }
until_() { # SECONDS COMMAND: repeats the command until it succeeds
	left=$1; shift
	until "$@" >/dev/null 2>&1; do
		left=$((left - 1)); [ $left -gt 0 ] || { echo "never: $*" >&2; "$@" >&2 || :; tail -n 20 ./*.log >&2; exit 1; }
		sleep 1
	done
}
at() { # HOST COMMAND...: runs a command on a host, with a machine id, a name and an /etc/sysctl.d of its own
	host=$1; shift
	${run-} ip netns exec "$host" unshare --uts sh -ec 'hostname "$0"; mount --bind "$0/machine-id" /etc/machine-id; mount --bind "$0/sysctl.d" /etc/sysctl.d; exec "$@"' "$host" "$@"
}
for i in 1 2 3; do
	h=h$i
	mkdir -p $h/run $h/sysctl.d
	printf '%032d\n' $i >$h/machine-id
	ip netns add $h
	python3 traffic.py wire $i 20 >wire$i.log 2>&1 &
	until_ 300 grep -q wired wire$i.log
	ip link set p$i master br0 up
	ip link set q$i netns $h name eth0
	ip netns exec $h sh -ec "ip link set lo up; ip address add 10.9.0.1$i/24 dev eth0; ip link set eth0 up
		sysctl -qw net.ipv4.tcp_wmem='4096 8192 8192'"
done

# Production traffic: each host sends over new connections, as fast as its buffers allow.
python3 traffic.py sink 10.9.0.1 9000 >sink.log 2>&1 &
for i in 1 2 3; do ip netns exec h$i python3 traffic.py source 10.9.0.1 9000 >source$i.log 2>&1 & done

hub() { linerate-hub --data "$PWD/hub" --listen 127.0.0.1:7071 --fleet 10.9.0.1:7072 >>hub.log 2>&1 & hub=$!; until_ 300 fleet status; }
fleet() { linerate fleet "$@" --data "$PWD/hub"; }
agent() { (run=exec; at h$1 linerate agent --orders --group '' --config "$PWD/h$1/etc" --state "$PWD/h$1/state" \
	--socket "$PWD/h$1/run/agent.sock" >>agent$1.log 2>&1) & echo $! >h$1/agent.pid; until_ 300 test -S h$1/run/agent.sock; }
node() { (run=exec; at h$1 linerate fleet node --home "$PWD/h$1/home" --state "$PWD/h$1/none" --agent "$PWD/h$1/run/agent.sock" >>node$1.log 2>&1) &
	echo $! >h$1/node.pid; }
holds() { # VALUE HOST...: what the kernel of each host holds
	want=$1; shift
	for h; do [ "$(ip netns exec $h sysctl -n net.ipv4.tcp_wmem | tr '\t' ' ')" = "$want" ] || return 1; done
}

# enlist KEY-LINE: three hosts join, root on each trusts the person of the line that `fleet key` prints, and lets the fleet
# change tcp_wmem.
enlist() {
	for i in 1 2 3; do
		token=$(fleet invite --label rack=r$i --label site=a | sed 's/^linerate-hub join //')
		at h$i linerate fleet join $token --home "$PWD/h$i/home"
		at h$i $1 --home "$PWD/h$i/home" --config "$PWD/h$i/etc" --allow net.ipv4.tcp_wmem
		agent $i; node $i
	done
	until_ 300 reached
	until_ 300 planned
}
key() { # NAME: makes the key of a person, and prints the line for the hosts
	XDG_CONFIG_HOME="$PWD/$1" linerate fleet key --name $1 --json | sed 's/.*"line":"\([^"]*\)".*/\1/'
}
reached() { fleet ask knob net.ipv4.tcp_wmem | grep -q '^3 of 3\|^     3'; }
planned() { fleet apply --plan $quick 'net.ipv4.tcp_wmem=4096 131072 4194304' | grep -q 'on 3 hosts'; }
quick='--window 1s --pause 300ms --pairs 4 --deadline 60s --settle 2s --soak 1s --long-soak 1s --collect 120s'
