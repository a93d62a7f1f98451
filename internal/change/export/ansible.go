package export

import (
	"fmt"
	"strings"
)

// sysctlFile is where Ansible keeps the sysctls of a host.
const sysctlFile = "/etc/sysctl.d/90-linerate-export.conf"

// ansible writes one playbook: sysctls through ansible.posix.sysctl, module options through a file,
// and the rest through the engine, as a program and a unit that runs it at every start.
//
// Check mode is accurate: a task asks the engine for differences, through a script on standard
// input, and that task runs in check mode too.
func (d *draft) ansible() []File {
	var tasks strings.Builder
	var rest, modules, kept []setting
	for _, s := range d.settings {
		switch s.way.kind {
		case waySysctl:
			tasks.WriteString(s.ansibleSysctl())
		case wayModule:
			modules = append(modules, s)
		case wayKernel:
			d.leave(s.Change, "it holds when the kernel starts",
				s.way.bootParameter(s.To)+" on the kernel's command line")
			continue
		default:
			rest = append(rest, s)
		}
		kept = append(kept, s)
	}
	d.settings = kept
	if len(modules) > 0 {
		tasks.WriteString(ansibleModules(modules))
	}
	if len(rest) > 0 {
		tasks.WriteString(d.ansibleEngine(rest))
	}

	var b strings.Builder
	b.WriteString("---\n" + d.header("Settings for other hosts, an Ansible playbook"))
	b.WriteString("#\n# ansible-playbook --check FILE shows what would change. " +
		"Needs the collection ansible.posix for sysctls.\n")
	if len(d.interfaces) > 0 {
		b.WriteString("# Set linerate_if1 and so on in the inventory where interfaces have other names than here.\n")
	}
	fmt.Fprintf(&b, "- name: %s\n",
		ansibleQuote("Settings exported by linerate on "+comment(orUnnamed(d.set.Origin.Host))))
	b.WriteString("  hosts: all\n  become: true\n")
	if len(d.interfaces) > 0 || len(rest) > 0 {
		b.WriteString("  vars:\n")
	}
	for _, i := range d.interfaces {
		fmt.Fprintf(&b, "    linerate_%s_proven: %s\n", i.Variable, ansibleQuote(i.Name))
	}
	if len(rest) > 0 {
		b.WriteString("    linerate_script: !unsafe |\n" + indented(d.program(rest), "      "))
	}
	b.WriteString("  tasks:\n" + strings.TrimPrefix(tasks.String(), "\n"))
	return []File{{Name: "linerate-export.yml", Mode: "0644", Content: b.String()}}
}

func orUnnamed(host string) string {
	if host == "" {
		return "an unnamed host"
	}
	return host
}

// ansibleVariable returns the template variable of an interface.
func ansibleVariable(variable string) string {
	return "linerate_" + variable + " | default(linerate_" + variable + "_proven)"
}

// ansibleSysctl is one task of ansible.posix.sysctl. A dot separates elements of a name, so a dot
// of an interface becomes a slash.
func (s setting) ansibleSysctl() string {
	a := s.way.args[0]
	name := yamlQuote(dotted(a.before) + dotted(a.link) + dotted(a.after))
	switch {
	case a.link != "":
		name = yamlQuote(dotted(a.before) + "{{ " + ansibleVariable(a.variable) + " | replace('.', '/') }}" +
			dotted(a.after))
	case strings.ContainsAny(name, "{}"):
		name = "!unsafe " + name
	}
	return fmt.Sprintf(`
    - name: %s
      ansible.posix.sysctl:
        name: %s
        value: %s
        sysctl_file: %s
        sysctl_set: true
        reload: false
`, ansibleQuote("Set "+string(s.Knob)), name, ansibleQuote(string(s.To)), sysctlFile)
}

// dotted returns a part of a path below /proc/sys in the notation of sysctl(8).
func dotted(path string) string {
	return strings.NewReplacer("/", ".", ".", "/").Replace(path)
}

func ansibleModules(settings []setting) string {
	var lines strings.Builder
	for _, s := range settings {
		lines.WriteString(s.way.modprobe(s.To) + "\n")
	}
	return `
    - name: Keep the options of kernel modules, which hold when a module is loaded again
      ansible.builtin.copy:
        dest: /etc/modprobe.d/linerate-export.conf
        mode: "0644"
        content: |
` + indented(lines.String(), "          ")
}

// unit runs the engine at every start; %s is for the lines of its environment.
const unit = `[Unit]
Description=Settings exported by linerate on another host
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
%sExecStart=/usr/local/sbin/linerate-export apply

[Install]
WantedBy=multi-user.target
`

func (d *draft) ansibleEngine(settings []setting) string {
	environment, lines := "", ""
	for _, i := range d.interfaces {
		upper := strings.ToUpper(i.Variable)
		environment += fmt.Sprintf("        LINERATE_%s: %s\n", upper,
			yamlQuote("{{ "+ansibleVariable(i.Variable)+" }}"))
		lines += fmt.Sprintf("Environment=\"LINERATE_%s={{ %s }}\"\n", upper, ansibleVariable(i.Variable))
	}
	if environment != "" {
		environment = "      environment:\n" + environment
	}
	return `
    - name: Ask what differs
      ansible.builtin.command:
        argv: [sh, -s, check]
        stdin: "{{ linerate_script }}"
` + environment + `      register: linerate_check
      check_mode: false
      changed_when: false
      failed_when: linerate_check.rc not in [0, 3, 4]

    - name: Install the program that makes the settings
      ansible.builtin.copy:
        dest: /usr/local/sbin/linerate-export
        mode: "0755"
        content: "{{ linerate_script }}"

    - name: Install the unit that runs it at every start
      ansible.builtin.copy:
        dest: /etc/systemd/system/linerate-export.service
        mode: "0644"
        content: |
` + indented(fmt.Sprintf(unit, lines), "          ") + `
    - name: Run it at every start
      ansible.builtin.systemd:
        name: linerate-export.service
        enabled: true
        daemon_reload: true
      when: ansible_service_mgr == "systemd" and not ansible_check_mode

    - name: Make the settings
      ansible.builtin.command:
        argv: [/usr/local/sbin/linerate-export, apply]
` + environment + `      when: linerate_check.rc != 0
      register: linerate_apply
      changed_when: "'changed ' in linerate_apply.stdout"
`
}
