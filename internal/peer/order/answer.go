package order

import "github.com/linerate/linerate/internal/change/knob"

// Code is what a host did with an order. A host always answers with one of them.
type Code string

// What a host did.
const (
	InTrial      Code = "trial"         // Try: the value is in force until the deadline
	Committed    Code = "committed"     // Commit: the value stays
	Undone       Code = "undone"        // Undo: the old value is back, or the change had ended before
	Reverted     Code = "reverted"      // the trial has ended without a confirmation; the old value is back
	NotPersisted Code = "not-persisted" // the host has restarted since, and holds the old value
	Persisted    Code = "persisted"     // Persist: the value survives a restart
	Interrupted  Code = "interrupted"   // a crash came between taking the order and its first write: nothing was written
)

// Why a host refused an order. Nothing was written.
const (
	NotAnOrder   Code = "not-an-order"
	KeyUnknown   Code = "key-unknown"
	BadSignature Code = "bad-signature"
	TooFewKeys   Code = "too-few-signatures"
	OtherHost    Code = "other-host"
	TooEarly     Code = "too-early"
	TooLate      Code = "too-late"
	OldEpoch     Code = "old-epoch"
	OldSerial    Code = "old-serial"
	IDReused     Code = "id-reused" // another order had this id

	SwitchedOff  Code = "switched-off" // by the kill switch of the host's policy
	KnobDenied   Code = "knob-denied"  // by the policy, or the knob is not one that others may change
	ClassDenied  Code = "class-denied" // the change disturbs traffic more than the policy allows
	HoursDenied  Code = "hours-denied" // outside the hours of the policy
	TrialTooLong Code = "trial-too-long"
	// PersistDenied: the policy does not let changes of the fleet survive a restart.
	PersistDenied Code = "persist-denied"

	ValueDiffers Code = "value-differs" // the knob does not hold the expected value
	ValueRefused Code = "value-refused" // out of range, or the kernel refused it
	ReadBack     Code = "read-back"     // the kernel kept another value; the old one is back
	OnTrial      Code = "on-trial"      // another trial is in force
	NoTrial      Code = "no-trial"      // the host has not taken the try that this is about
	Foreign      Code = "foreign"       // another program has set the knob since; its value is left alone
	NoFile       Code = "no-file"       // Persist: no file of this host can hold the change; the text says why
	Busy         Code = "busy"          // another linerate has the journal open: send it again
	Failed       Code = "failed"        // the host could not record or write; the text says why
)

// Answer is the answer of a host to one order.
type Answer struct {
	Order  string     `json:"order,omitempty"` // absent: the bytes are not an order
	Code   Code       `json:"code"`
	Value  knob.Value `json:"value,omitempty"`  // what the knob holds, where that explains the code
	Change string     `json:"change,omitempty"` // the change in the host's journal
	Text   string     `json:"text,omitempty"`
}

// Acted reports whether the code says that the order was carried out, now or when it first arrived.
func (c Code) Acted() bool {
	return c == InTrial || c == Committed || c == Undone || c == Persisted
}
