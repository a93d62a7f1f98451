package stamp

import (
	"crypto/hmac"
	"encoding/binary"
)

// The TLVs that matter here (RFC 8972 §5.1) and their flags (§5.2).
const (
	tlvHeaderBytes  = 4
	tlvExtraPadding = 1
	tlvHMAC         = 8

	flagUnrecognised = 0x80 // a sender sets it, and a reflector without TLVs leaves it set
	flagMalformed    = 0x40
	flagIntegrity    = 0x20
)

// reflectTLVs sets the flags of the TLVs after the base packet, as a reflector must, and leaves the
// rest a copy. sent is the sequence number as the sender wrote it and answered the reflector's:
// HMACs cover them and the TLVs before. Zeros are padding of senders without TLVs.
func reflectTLVs(p []byte, a *authenticator, sent, answered []byte) {
	var verified, useful bool // has a right HMAC; has a TLV that needs one
	mac, end := -1, len(p)
	broken := false // the rest is copied without being examined
	for at := 0; at < len(p); {
		rest := p[at:]
		if len(rest) < tlvHeaderBytes || len(rest) < tlvHeaderBytes+int(binary.BigEndian.Uint16(rest[2:])) {
			if allZero(rest) {
				end = at
				break
			}
			rest[0] = rest[0]&^(flagUnrecognised|flagMalformed|flagIntegrity|0x1f) | flagMalformed
			broken, end = true, at
			break
		}
		length := tlvHeaderBytes + int(binary.BigEndian.Uint16(rest[2:]))
		if rest[1] == 0 && length == tlvHeaderBytes && allZero(rest) {
			end = at
			break
		}
		switch {
		case rest[1] == tlvHMAC && length != tlvHeaderBytes+hmacBytes:
			rest[0] = flagMalformed
			broken, end = true, at
		case rest[1] == tlvHMAC && a != nil && mac < 0:
			// The sender covered the bytes as it wrote them, so its flags must still be in place:
			// they are written below.
			verified = hmac.Equal(rest[tlvHeaderBytes:length], a.of(sent, p[:at]))
			mac = at
		case rest[1] != tlvExtraPadding:
			useful = true
			if mac >= 0 {
				verified = false // only padding may follow the HMAC
			}
		}
		if broken {
			break
		}
		at += length
	}
	failed := a != nil && (mac >= 0 || useful) && !verified
	for at := 0; at < end; {
		length := tlvHeaderBytes + int(binary.BigEndian.Uint16(p[at+2:]))
		known := p[at+1] == tlvExtraPadding || p[at+1] == tlvHMAC && a != nil
		p[at] = 0
		if !known {
			p[at] |= flagUnrecognised
		}
		if failed {
			p[at] |= flagIntegrity
		}
		at += length
	}
	if mac >= 0 && !failed && !broken {
		copy(p[mac+tlvHeaderBytes:], a.of(answered, p[:mac]))
	}
}

func allZero(p []byte) bool {
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}

// putPadding fills p, which follows a base packet, with one extra padding TLV, or with zeros if
// there is no room for one.
func putPadding(p, pattern []byte) {
	clear(p)
	if len(p) < tlvHeaderBytes {
		return
	}
	p[0], p[1] = flagUnrecognised, tlvExtraPadding
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)-tlvHeaderBytes))
	copy(p[tlvHeaderBytes:], pattern)
}
