package datagram

// windowBits is how many of the last sequence numbers a receiver remembers: at ten million packets
// per second a hundredth of a second, and more than any queue on a path holds.
const (
	windowBits  = 1 << 17
	windowWords = windowBits / 64
)

// arrival is what a sequence number shows about a packet.
type arrival int

const (
	inOrder   arrival = iota // later than all before
	reordered                // first of its number, but after a later one (RFC 4737 §3.3)
	duplicate                // its number has arrived before
	late                     // too old to distinguish the two
)

// window distinguishes first arrivals from duplicates by one bit for each of the last windowBits
// sequence numbers, highest included.
type window struct {
	bits    [windowWords]uint64
	any     bool
	highest uint64
}

// note records a sequence number.
func (w *window) note(n uint64) arrival {
	switch {
	case !w.any:
		w.any, w.highest = true, n
	case n > w.highest:
		w.forget(n)
		w.highest = n
	case w.highest-n >= windowBits:
		return late
	default:
		word, bit := w.place(n)
		if w.bits[word]&bit != 0 {
			return duplicate
		}
		w.bits[word] |= bit
		return reordered
	}
	word, bit := w.place(n)
	w.bits[word] |= bit
	return inOrder
}

// forget clears the bits of the numbers after highest up to n, which stand for numbers that leave
// the window.
func (w *window) forget(n uint64) {
	if n-w.highest == 1 { // nearly every packet
		word, bit := w.place(n)
		w.bits[word] &^= bit
		return
	}
	if n-w.highest >= windowBits {
		w.bits = [windowWords]uint64{}
		return
	}
	for i := w.highest + 1; ; {
		word, bit := w.place(i)
		if bit == 1 && n-i >= 63 {
			w.bits[word] = 0 // a whole word at a time
			if n-i == 63 {
				return
			}
			i += 64
			continue
		}
		w.bits[word] &^= bit
		if i == n {
			return
		}
		i++
	}
}

func (w *window) place(n uint64) (word int, bit uint64) {
	at := n % windowBits
	return int(at / 64), 1 << (at % 64)
}
