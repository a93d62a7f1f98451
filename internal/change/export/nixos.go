package export

import (
	"fmt"
	"slices"
	"strings"
)

// nixos writes one module: sysctls, module options and kernel parameters as NixOS options, and a
// unit with the engine for the rest, which waits for the interfaces and undoes everything when it
// stops.
//
// systemd.network.links could set rings and offloads, but only the first .link file that matches a
// NIC applies: a file of ours would replace the one that names the NIC.
func (d *draft) nixos() []File {
	var sysctls, modules strings.Builder
	var parameters []string
	var rest []setting
	for _, s := range d.settings {
		switch s.way.kind {
		case waySysctl:
			fmt.Fprintf(&sysctls, "    %s = %s;\n", s.nixSysctl(), nixQuote(string(s.To)))
		case wayModule:
			modules.WriteString(s.way.modprobe(s.To) + "\n")
		case wayKernel:
			parameters = append(parameters, nixQuote(s.way.bootParameter(s.To)))
		default:
			rest = append(rest, s)
		}
	}
	var b strings.Builder
	b.WriteString(d.header("Settings for other hosts, a NixOS module"))
	b.WriteString("#\n# Put it beside configuration.nix and name it in imports.\n{ config, lib, pkgs, utils, ... }:\n\n")
	if len(d.interfaces) > 0 {
		b.WriteString("let\n")
		for _, i := range d.interfaces {
			fmt.Fprintf(&b, "  %s = %s;\n", i.Variable, nixQuote(i.Name))
		}
		b.WriteString("in\n")
	}
	b.WriteString("{\n")
	if sysctls.Len() > 0 {
		b.WriteString("  boot.kernel.sysctl = {\n" + sysctls.String() + "  };\n")
	}
	if modules.Len() > 0 {
		b.WriteString("  boot.extraModprobeConfig = " + nixLines(modules.String(), "    ") + ";\n")
	}
	if len(parameters) > 0 {
		b.WriteString("  boot.kernelParams = [ " + strings.Join(parameters, " ") + " ];\n")
	}
	if len(rest) > 0 {
		b.WriteString(d.nixUnit(rest))
	}
	b.WriteString("}\n")
	return []File{{Name: "linerate-export.nix", Mode: "0644", Content: b.String()}}
}

// nixSysctl returns the name of a sysctl as an attribute.
func (s setting) nixSysctl() string {
	a := s.way.args[0]
	if a.link == "" {
		return nixQuote(dotted(a.before))
	}
	before, after := nixQuote(dotted(a.before)), nixQuote(dotted(a.after))
	return strings.TrimSuffix(before, `"`) + `${builtins.replaceStrings [ "." ] [ "/" ] ` + a.variable + `}` +
		strings.TrimPrefix(after, `"`)
}

func (d *draft) nixUnit(settings []setting) string {
	var devices, environment strings.Builder
	for _, i := range d.interfaces {
		if slices.ContainsFunc(settings, func(s setting) bool { return s.uses(i.Variable) }) {
			fmt.Fprintf(&devices, " \"sys-subsystem-net-devices-${utils.escapeSystemdPath %s}.device\"", i.Variable)
			fmt.Fprintf(&environment, "      LINERATE_%s = %s;\n", strings.ToUpper(i.Variable), i.Variable)
		}
	}
	var b strings.Builder
	b.WriteString("  systemd.services.linerate-export = {\n" +
		"    description = \"Settings exported by linerate on another host\";\n")
	fmt.Fprintf(&b, "    wantedBy = [ \"multi-user.target\" ];\n    wants = [ \"network-online.target\"%s ];\n"+
		"    after = [ \"network-online.target\"%s ];\n",
		devices.String(), devices.String())
	b.WriteString("    path = [ pkgs.ethtool pkgs.gawk pkgs.iproute2 ];\n")
	if environment.Len() > 0 {
		b.WriteString("    environment = {\n" + environment.String() + "    };\n")
	}
	b.WriteString("    serviceConfig = let\n      script = pkgs.writeText \"linerate-export\" " +
		nixLines(d.program(settings), "        ") + ";\n    in {\n")
	b.WriteString("      Type = \"oneshot\";\n      RemainAfterExit = true;\n" +
		"      ExecStart = \"${pkgs.runtimeShell} ${script} apply\";\n" +
		"      ExecStop = \"${pkgs.runtimeShell} ${script} undo\";\n    };\n  };\n")
	return b.String()
}
