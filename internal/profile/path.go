package profile

import (
	"cmp"
	"slices"

	"github.com/linerate/linerate/internal/base/sorting"
)

// Step is one call of the hottest path.
type Step struct {
	Function int // index into Profile.Functions
	Samples  uint64
}

// HottestPath follows the calls from the root to the leaf, at each step into the function with most
// samples below it. It considers stacks of kernel code on the network path only, so that a
// busy program does not hide them, and all kernel stacks where there is none.
func (p *Profile) HottestPath() []Step {
	among := slices.DeleteFunc(slices.Clone(p.Stacks), func(s Stack) bool { return !onPath(s.Stage) })
	if len(among) == 0 {
		among = slices.DeleteFunc(slices.Clone(p.Stacks), func(s Stack) bool { return s.Context == ContextUser })
	}
	var path []Step
	for depth := 0; len(among) > 0; depth++ {
		below := make(map[int]uint64)
		for _, s := range among {
			if depth < len(s.Functions) {
				below[s.Functions[len(s.Functions)-1-depth]] += s.Samples
			}
		}
		if len(below) == 0 {
			break
		}
		best := -1
		for f, n := range below {
			if best < 0 || n > below[best] || n == below[best] && f < best {
				best = f
			}
		}
		path = append(path, Step{best, below[best]})
		among = slices.DeleteFunc(among, func(s Stack) bool {
			return depth >= len(s.Functions) || s.Functions[len(s.Functions)-1-depth] != best
		})
	}
	return path
}

// Node is a function in the tree of calls, with all samples at and below it.
type Node struct {
	Function int // index into Profile.Functions; −1: the root, or the context at depth 1
	Name     string
	Samples  uint64
	Self     uint64
	Calls    []*Node // most samples first
}

// Tree returns the calls from the root: contexts, then functions. Nodes below least samples are
// left out, and counted in the second result.
func (p *Profile) Tree(least uint64) (*Node, uint64) {
	root := &Node{Function: -1, Name: "all"}
	index := map[*Node]map[string]*Node{}
	child := func(n *Node, function int, name string) *Node {
		if index[n] == nil {
			index[n] = make(map[string]*Node)
		}
		c := index[n][name]
		if c == nil {
			c = &Node{Function: function, Name: name}
			index[n][name] = c
			n.Calls = append(n.Calls, c)
		}
		return c
	}
	for _, s := range p.Stacks {
		root.Samples += s.Samples
		at := child(root, -1, s.Context)
		at.Samples += s.Samples
		for _, f := range slices.Backward(s.Functions) {
			at = child(at, f, p.Functions[f].Name)
			at.Samples += s.Samples
		}
		at.Self += s.Samples
	}
	var pruned uint64
	var prune func(n *Node)
	prune = func(n *Node) {
		n.Calls = slices.DeleteFunc(n.Calls, func(c *Node) bool {
			if c.Samples < least {
				pruned += c.Samples
				return true
			}
			return false
		})
		sorting.StableFunc(n.Calls, func(x, y *Node) int {
			return cmp.Or(cmp.Compare(y.Samples, x.Samples), cmp.Compare(x.Name, y.Name))
		})
		for _, c := range n.Calls {
			prune(c)
		}
	}
	prune(root)
	return root, pruned
}
