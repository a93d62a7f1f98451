package durable

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// sector is the unit that a disk writes whole, in bytes. Older disks promise 512, so that is the
// granularity of torn writes.
const sector = 512

// CrashClone returns the file system as it could be found after a power loss now. Synced data is
// present. Every change of a directory and of a file's content since its last sync is present with
// probability keepUnsynced, each by a separate draw of rng: names may be missing or stale, appended
// data may be truncated or have holes of zeros. With 0 exactly the synced state remains, with 1
// everything. The clone holds no locks, and all of its content is synced: a second crash of it
// changes nothing.
//
// It is harsher than real file systems: both names of a rename are drawn separately, and no order
// of writes is kept.
func (m *Mem) CrashClone(keepUnsynced float64, rng *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	keep := func() bool {
		// The extremes are exact and need no generator.
		return keepUnsynced >= 1 || (keepUnsynced > 0 && rng.Float64() < keepUnsynced)
	}
	// The kernel's locks end with the machine, so the clone starts without any.
	clone := NewMem()
	clone.root = m.root.crash(keep, rng, map[*memNode]*memNode{})
	return clone
}

// crash returns the remains of a node. A node with two names (a rename half on disk) is the same
// node in the clone.
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
	// Names of both states: a name removed without a sync may be back, a name created without a
	// sync may be missing.
	names := maps.Clone(n.children)
	maps.Copy(names, n.syncedChildren)
	// Sorted, so that one seed has one outcome.
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

// crashData returns the remains of a file's content.
func (n *memNode) crashData(keep func() bool, rng *rand.Rand) []byte {
	if n.safe < len(n.synced) && !keep() {
		// The file was truncated, or emptied and rewritten: the size is one field of the inode, so
		// the result is the old file or the new one.
		return slices.Clone(n.synced)
	}
	return tear(slices.Clone(n.data), n.safe, keep, rng)
}

// tear loses parts of data after safe: unwritten sectors read as zeros, and the end may be missing.
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
