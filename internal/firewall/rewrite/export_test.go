package rewrite

import "github.com/linerate/linerate/internal/firewall/ruleset"

var Nanoseconds = nanoseconds

// BuildShared makes new rules without a proof, in decision trees.
func BuildShared(r *ruleset.Ruleset) (*ruleset.Ruleset, []Change) { return build(r, nil, true) }
