// Package hypervisor tells what a host runs on: iron, a virtual machine of which make, a container,
// or both.
//
// # Model
//
// [Find] looks for what hypervisors and makers of containers leave where their guests can see it,
// and answers with a word: kvm, vmware, xen, vm for one that does not say its name, container,
// kvm+container; nothing for iron. It reads through a [Tree] that the caller makes, so it never
// opens a file. It decides what the speed of a card and of a bus is worth: of an imitated one,
// nothing.
//
// # Sources
//
// /sys/class/dmi/id and /sys/hypervisor of Documentation/ABI; the strings that firmware of each
// make has there; CPUID leaf 1 as /proc/cpuinfo prints it;
// arch/x86/kernel/{kvmclock.c,cpu/hypervisor.c}; Documentation/devicetree/bindings/arm/xen.txt;
// systemd-detect-virt(1) for the marks of containers.
//
// # Limits
//
// A hypervisor that hides well is not found, and a machine of iron is never taken for a guest.
// Clouds that rent whole machines use the strings of their guests with one word more, which is
// known for one of them.
package hypervisor
