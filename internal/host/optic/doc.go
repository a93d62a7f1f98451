// Package optic reads what a pluggable module of a network card says of itself: its maker, its
// kind, its temperature, its lasers, and the limits of each.
//
// # Model
//
// A module answers at addresses on a two-wire bus. [Parse] reads the pages that it needs through a
// [Reader], so that it serves the kernel's netlink message and recorded dumps alike. A [Module] has
// [Reading] values, each with the limits that the maker has stored and the state that follows.
// [Module.Judge] finds the states, also of a module that another program read.
//
// # Units
//
// Those of JSON keys and of the field Unit: celsius, volts, amperes, watts.
//
// # Sources
//
// SFF-8472 (SFP, SFP+, SFP28), SFF-8636 (QSFP+, QSFP28), CMIS 5 (QSFP-DD, OSFP), SFF-8024 (the
// codes that they share). The tests parse recorded memory of real modules and compare with what
// other programs printed of them.
//
// # Limits
//
// Of modules with CMIS only the maker, the temperature and the voltage are read. Coherent and
// tunable lasers have more. A reading without limits has no state.
package optic
