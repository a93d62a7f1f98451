// Package selection is the grammar that chooses hosts: on the page, on the command line and for
// orders.
//
// # Model
//
// [Parse] makes a [Selection] of a text, and [Selection.Match] says whether it holds for one host.
// A text is a list of terms with blanks between them, all of which must hold:
//
//	class:mlx5-6.12 site:ams,fra finding:rx-ring-overrun drift:yes seen>10m -host:db*
//
//	KEY:VALUE[,VALUE…]   one of the values holds; * and ? are any letters and any letter
//	KEY>VALUE KEY<VALUE  and >= <=: a time since, a version or a number
//	knob:NAME=VALUE      the value of a knob; also !=
//	-TERM                the term does not hold
//	WORD                 the name of the host, as host:WORD
//	"…"                  a value with blanks or commas; \" and \\ inside
//
// The keys are those of [Keys], and label.NAME for any label. An unknown key is an error: a
// negated term with a typing error would choose every host. A value without wildcards is compared
// whole and without regard to case; a class also by its beginning, up to a hyphen.
//
// What is not known of a host fulfils no term, and so fulfils every negated one.
//
// # Units
//
// Times are durations as in 90s, 10m, 2h, 3d. Versions are compared number by number.
//
// # Sources
//
// The query languages of Prometheus, GitHub and Tailscale's list of machines, for what people type.
//
// # Limits
//
// No parentheses and no OR between keys. At most 4096 bytes and 64 terms. An order keeps the ids
// that a text chose, never the text.
package selection
