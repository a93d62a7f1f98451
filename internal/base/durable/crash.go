package durable

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// sector is what a disk writes whole, in bytes. Older disks promise 512, so that is the grain of
// torn writes.
const sector = 512

// CrashClone returns the file system as it could be found after power loss now. What was synced is
// there. Every change of a directory and of a file's content since its last sync is there with
// probability keepUnsynced, each by its own throw of rng: names may be missing or stale, appended
// data may be cut off or have holes of zeros. With 0 exactly the synced state is left, with 1
// everything. The clone holds no locks, and is itself safe: a second crash of it changes nothing.
//
// It is harsher than real file systems: both names of a rename are thrown for apart, and nothing is
// written in order.
func (m *Mem) CrashClone(keepUnsynced float64, rng *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	keep := func() bool {
		// The ends are exact, and need no generator.
		return keepUnsynced >= 1 || (keepUnsynced > 0 && rng.Float64() < keepUnsynced)
	}
	// The kernel's locks die with the machine, and so do these: the clone starts without any.
	clone := NewMem()
	clone.root = m.root.crash(keep, rng, map[*memNode]*memNode{})
	return clone
}

// crash returns what is left of a node. A node that two names reach (a rename half on disk) is the
// same node in the clone.
func (n *memNode) crash(keep func() bool, rng *rand.Rand, done map[*memNode]*memNode) *memNode {
	if left, ok := done[n]; ok {
		return left
	}
	left := &memNode{mode: n.mode, modified: n.modified}
	done[n] = left
	if !n.isDir() {
		left.data = n.crashData(keep, rng)
		left.synced, left.safe = left.data, len(left.data)
		return left
	}
	left.children = map[string]*memNode{}
	// Names of both faces: one that was removed without a sync may be back, one that was made
	// without a sync may be gone.
	names := maps.Clone(n.children)
	maps.Copy(names, n.syncedChildren)
	// Sorted, so that one seed gives one outcome.
	for _, name := range slices.Sorted(maps.Keys(names)) {
		child, synced := n.children[name], n.syncedChildren[name]
		if child != synced && !keep() {
			child = synced
		}
		if child != nil {
			left.children[name] = child.crash(keep, rng, done)
		}
	}
	left.syncedChildren = maps.Clone(left.children)
	return left
}

// crashData returns what is left of a file's content.
func (n *memNode) crashData(keep func() bool, rng *rand.Rand) []byte {
	if n.safe < len(n.synced) && !keep() {
		// It was cut, or emptied and written anew: the size is one field of the inode, so it is the
		// old file or the new one.
		return slices.Clone(n.synced)
	}
	return tear(slices.Clone(n.data), n.safe, keep, rng)
}

// tear loses parts of data behind safe: sectors that were not written read as zeros, and the end
// may be missing.
func tear(data []byte, safe int, keep func() bool, rng *rand.Rand) []byte {
	for start := safe; start < len(data); start = (start/sector + 1) * sector {
		if !keep() {
			clear(data[start:min((start/sector+1)*sector, len(data))])
		}
	}
	if len(data) > safe && !keep() {
		length := safe
		if rng != nil {
			length += rng.IntN(len(data) - safe)
		}
		data = data[:length]
	}
	return data
}
