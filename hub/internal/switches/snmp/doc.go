// Package snmp asks agents by SNMP, version 2c or 3.
//
// # Model
//
// A [Session] is a mib.Agent at an address: a connected UDP socket, so that the kernel drops what
// comes from elsewhere. gosnmp packs, signs, encrypts and retries; this package turns what it
// returns into the values of package mib, and its errors into sentences. A silent agent, one that
// refuses the user and one that rejects the key are different errors, as far as the protocol
// distinguishes them: an agent does not answer a wrong community.
//
// Answers are a stranger's. A text has at most [mostText] bytes, identifiers are parsed anew, and a
// packet on which the library fails is an error of that request.
//
// # Units
//
// Durations are as in package time.
//
// # Sources
//
// RFC 3416 (requests and error codes), RFC 3414 (users, keys and the reports of their errors),
// RFC 3826 (AES), RFC 7860 (SHA-2).
//
// # Limits
//
// One request at a time. SNMPv1 is not supported: it has no 64-bit counters and no GETBULK. MD5 and
// DES are supported for old switches, and protect nothing against a determined reader.
package snmp
