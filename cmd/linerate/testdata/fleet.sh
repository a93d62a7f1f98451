# What TestFleet types: a change that is kept, one that harms, undo, and a hub, a node and all rollouts lost in between.
. "${0%/*}/fleetworld.sh"

# judged ARGUMENT...: a rollout, begun anew after it is undone while its readings prove nothing: a machine without a CPU for
# the traffic or for the hosts gives no proof. $applied is the one that counts.
judged() {
	while :; do
		fleet apply --yes --wait "$@" >applied && status=0 || status=$?
		cat applied
		applied=$(head -n 1 applied | sed 's/.* \(r[0-9a-f]*\):.*/\1/')
		grep -q '^halted: the benefit is not proven' applied || return $status
		fleet undo --yes --wait "$applied"
	done
}

step join
hub
key=$(key ann)
export XDG_CONFIG_HOME="$PWD/ann"
enlist "$key"
fleet apply --plan $quick 'net.ipv4.tcp_wmem=4096 131072 4194304'
holds '4096 8192 8192' h1 h2 h3

step without a person nothing is signed
if fleet apply $quick 'net.ipv4.tcp_wmem=4096 131072 4194304' </dev/null; then exit 1; else echo "status $?"; fi

step kept
judged $quick 'net.ipv4.tcp_wmem=4096 131072 4194304'
holds '4096	131072	4194304' h1 h2 h3 || holds '4096 131072 4194304' h1 h2 h3
for i in 1 2 3; do linerate history --state "$PWD/h$i/state" | grep -q committed; done
kept=$applied

step harm
if judged $quick 'net.ipv4.tcp_wmem=4096 4096 4096'; then exit 1; else echo "status $?"; fi
holds '4096 131072 4194304' h1 h2 h3

step undo
fleet undo --yes --wait $kept
holds '4096 8192 8192' h1 h2 h3

step killed hub
fleet apply --yes $quick --settle 5s 'net.ipv4.tcp_wmem=4096 131072 4194304' >begun
killed=$(head -n 1 begun | sed 's/.* \(r[0-9a-f]*\):.*/\1/')
one() { fleet rollouts $killed | grep -q '1 committed'; }
until_ 300 one
kill -KILL $hub
wait $hub || :
kill -KILL $(cat h3/node.pid) 2>/dev/null || :
hub
fleet rollouts $killed | tee halted
grep -q '^halted: the hub has started again' halted
if fleet resume --yes $killed; then exit 1; else echo "too early: status $?"; fi
node 3
resumable() { fleet rollouts $killed --json | grep -q '"resumable":true'; }
until_ 300 resumable
until_ 300 reached
until fleet resume --yes --wait $killed; do fleet rollouts $killed | grep '^halted: the benefit is not proven'; done
holds '4096 131072 4194304' h1 h2 h3

step a hub that has lost its rollouts
kill -KILL $hub
wait $hub || :
rm -r hub/fleet/rollouts
hub
until_ 300 reached
fleet rollouts
fleet undo --yes --wait $killed
holds '4096 8192 8192' h1 h2 h3

step distrust
at h2 linerate fleet distrust ann --config "$PWD/h2/etc"
fleet apply --yes --wait $quick 'net.ipv4.tcp_wmem=4096 131072 4194304' || echo "status $?"
holds '4096 8192 8192' h2
step done
