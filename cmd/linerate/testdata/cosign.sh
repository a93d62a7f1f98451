# What TestTwoPeople types: changes that ask for two people, on two machines, and what goes wrong with them. ann works at
# the hub; bob's machine has no network at all.
. "${0%/*}/fleetworld.sh"
by() { person=$1; shift; XDG_CONFIG_HOME="$PWD/$person" fleet "$@"; }
sign() { XDG_CONFIG_HOME="$PWD/$1" unshare --net linerate fleet sign "$2" --yes; }
refused() { # COMMAND...: it must fail; its status is printed
	if "$@" 2>&1; then echo "not refused: $*" >&2; exit 1; else echo "status $?"; fi
}
# over: ends the rollout of the file, of which no host has the change, and checks that no kernel was written to.
over() { # FILE
	by ann undo --yes --wait $(rollout $1)
	holds '4096 8192 8192' h1 h2 h3
}
rollout() { sed 's/.*"id":"\(r[0-9a-f]\{8\}\)".*/\1/' $1; }
ordered() { by ann apply --yes $quick --to $1 'net.ipv4.tcp_wmem=4096 131072 4194304' ${2-} >/dev/null; }
begun() { fleet begin --wait $1; }

forge() { # FILE: asks for another value, in the plan and in each signed order
	python3 - $1 <<'END'
import base64, json, sys
old, new = b"131072 4194304", b"131072 8388608"
signed = json.loads(open(sys.argv[1], "rb").read().replace(old, new))
for i, line in enumerate(signed["orders"]):
    envelope = json.loads(base64.b64decode(line))
    envelope["order"] = base64.b64encode(base64.b64decode(envelope["order"]).replace(old, new)).decode()
    signed["orders"][i] = base64.b64encode(json.dumps(envelope, separators=(",", ":")).encode()).decode()
json.dump(signed, open(sys.argv[1], "w"), separators=(",", ":"))
END
}

step join
hub
ann=$(key ann) bob=$(key bob)
key carol >/dev/null
enlist "$ann"
for i in 1 2 3; do
	at h$i $bob --home "$PWD/h$i/home" --config "$PWD/h$i/etc" >/dev/null
	printf '  signatures: 2\n  persist: on\n' >>h$i/etc/policy.yaml
	at h$i linerate agent --orders --check --config "$PWD/h$i/etc"
done

step one signature
ordered one.orders
holds '4096 8192 8192' h1 h2 h3
refused begun one.orders
over one.orders

step one person twice
ordered twice.orders
refused sign ann twice.orders
mkdir -p false/linerate
sed 's/^ann$/bob/' ann/linerate/order.key >false/linerate/order.key
chmod 600 false/linerate/order.key
sign false twice.orders >/dev/null
refused begun twice.orders
over twice.orders

step a key that no host knows
ordered wrong.orders
sign carol wrong.orders >/dev/null
refused begun wrong.orders
over wrong.orders

step a plan that was changed
ordered changed.orders
sed -i 's/"to":"4096 131072 4194304"/"to":"4096 131072 8388608"/' changed.orders
refused sign bob changed.orders
refused begun changed.orders

step orders that were changed
ordered forged.orders
sign bob forged.orders >/dev/null
forge forged.orders
refused begun forged.orders
over forged.orders

step expired
ordered late.orders '--valid 20s' # time for bob to sign, on a busy machine too
cp late.orders unsigned.orders
sign bob late.orders >/dev/null
sleep 21
refused sign bob unsigned.orders
refused begun late.orders

step the hub is killed
ordered change.orders
sign bob change.orders
fleet begin change.orders
one() { fleet rollouts $(rollout change.orders) | grep -q '1 committed'; }
until_ 300 one
kill -KILL $hub
wait $hub || :
hub
refused fleet begin change.orders
resumable() { fleet rollouts $(rollout change.orders) --json | grep -q '"resumable":true'; }
until_ 300 resumable
until_ 300 reached
by bob resume --yes --to again.orders $(rollout change.orders) >/dev/null
refused begun again.orders
until_ 300 resumable
by bob resume --yes --to again.orders $(rollout change.orders) >/dev/null
sign ann again.orders
begun again.orders
holds '4096 131072 4194304' h1 h2 h3

step permanent
by bob persist --yes --to keep.orders $(rollout change.orders)
refused begun keep.orders
by bob persist --yes --to keep.orders $(rollout change.orders) >/dev/null
sign ann keep.orders >/dev/null
begun keep.orders
for i in 1 2 3; do
	at h$i linerate persist --check --state "$PWD/h$i/state"
	grep -h '^net' h$i/sysctl.d/*
done
refused by bob persist --yes $(rollout change.orders)

step undo needs one
by bob undo --yes --wait $(rollout change.orders)
holds '4096 8192 8192' h1 h2 h3
ls h1/sysctl.d h2/sysctl.d h3/sysctl.d

step a host leaves
ordered left.orders
sign bob left.orders >/dev/null
fleet begin left.orders >/dev/null
one() { fleet rollouts $(rollout left.orders) | grep -q '1 committed'; }
until_ 300 one
for i in 1 2 3; do
	if [ "$(ip netns exec h$i sysctl -n net.ipv4.tcp_wmem | tr '\t' ' ')" = '4096 8192 8192' ]; then gone=h$i; break; fi
done
at $gone linerate fleet leave --home "$PWD/$gone/home"
halted() { fleet rollouts $(rollout left.orders) | grep -q '^halted'; }
until_ 300 halted
fleet rollouts $(rollout left.orders)
grep -h 'has left the fleet' node${gone#h}.log
by ann undo --yes --wait $(rollout left.orders)
holds '4096 8192 8192' h1 h2 h3
step done
