package knob

// Place is where on a host this process runs, as far as the reach of knobs depends on it.
//
// A container with the network namespace of its host counts as the host: it can change the host's
// settings, and the administrator has allowed that.
type Place struct {
	InitialNetNS bool // the network namespace that the machine booted with
	Known        bool // false: unknown, and no knob is refused because of it
}

// Refusal returns why a knob cannot be changed from a place: nil, or an *Error that is ErrGlobal
// and has a hint. A knob whose scope is the whole host is absent or read-only in every network
// namespace except the first; the same file there would also change every container of the machine.
func (d Definition) Refusal(p Place) error {
	if d.Scope != ScopeGlobal || !p.Known || p.InitialNetNS {
		return nil
	}
	return &Error{Op: "check", Knob: d.Pattern, Err: ErrGlobal, hint: HintGlobal}
}

// HintGlobal is the hint of ErrGlobal, and of a knob of the whole host that a container does not
// even see.
const HintGlobal = "this setting is shared by the whole host: change it on the host, outside of the container"
