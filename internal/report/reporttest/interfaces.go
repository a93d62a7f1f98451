package reporttest

import (
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/optic"
	"github.com/linerate/linerate/internal/report"
)

// interfaces is the document of inspect with the names of two interfaces: one with everything that
// a card can report, and one without a link.
func interfaces() *report.InspectDocument {
	d := report.NewInspect(Envelope(), Snapshot())
	d.Interfaces = d.Interfaces[1:]
	d.Warnings = []string{"the module of eth1: only root may ask it"}
	i := &d.Interfaces[0]
	i.Channels = &host.Channels{Combined: 4, MaxCombined: 8}
	i.Symptoms = []host.Symptom{{Counter: "rx_missed_errors", Total: 41, Meaning: "the receive ring was full"}}
	limit := func(v float64) *float64 { return &v }
	i.Card = &host.Card{FirmwareVersion: "0.13-4", DriverVersion: "6.12.4", PCIID: "8086:10d3", Port: "fibre",
		Pause: &host.Pause{Autoneg: true, Rx: true}, FEC: &host.FEC{Active: "rs", Modes: []string{"rs", "baser"}},
		EEE: &host.EEE{}, PrivateFlags: map[string]bool{"legacy-rx": true, "vf-ipsec": false},
		RSS: &host.RSS{HashFunction: "toeplitz", Entries: 128, Shares: []host.RSSShare{{Queue: 0, Entries: 64}, {Queue: 1,
			Entries: 64}}},
		Modes: &host.LinkModes{Autoneg: true, Supported: []string{"1000baseT/Full", "10000baseSR/Full"},
			Partner: []string{"1000baseT/Full"}},
		Optic: &optic.Module{Form: "SFP", Standard: "10GBASE-SR", Vendor: "OEM", Part: "SFP-10G-SR-IT", Revision: "A",
			Serial: "WQ160412A115", SignalBitsPerSec: 10.3e9, WavelengthNanometres: 850, Readings: []optic.Reading{
				{Name: "temperature", Value: 44.3477, Unit: "celsius", LowAlarm: limit(-5), LowWarning: limit(0),
					HighWarning: limit(75), HighAlarm: limit(80), State: optic.Fine},
				{Name: "voltage", Value: 3.3034, Unit: "volts"},
				{Name: "bias", Lane: 1, Value: 0.010126, Unit: "amperes"},
				{Name: "transmit", Lane: 1, Value: 0.597e-3, Unit: "watts", LowAlarm: limit(0.1e-3), LowWarning: limit(0.1259e-3),
					HighWarning: limit(1e-3), HighAlarm: limit(1.5849e-3), State: optic.Fine},
				{Name: "receive", Lane: 1, Value: 0, Unit: "watts", LowAlarm: limit(10e-6), LowWarning: limit(12.6e-6),
					HighWarning: limit(0.79e-3), HighAlarm: limit(1e-3), State: optic.LowAlarm},
			}}}
	report.FillSlices(d)
	return d
}
