// Package daemon is the daemon that keeps the history of a host and shows it.
//
// # Model
//
// [Main] reads flags and a file of YAML, and [Run] joins what other packages do: every second a
// reading (package sample) goes to the history (record) and to those who have a store already
// (record/remote); every minute the host is judged without a peer (loop), and verdicts, changes,
// runs, reboots and links become events (timeline); schedules measure other hosts (schedule), rules
// watch all of it (alert), and the page and the APIs tell it (web/api, web/page) behind one frame
// that says who may ask (web).
//
// One goroutine samples and does nothing else, so that no query, target or receiver can make a
// second late. Whatever ends with an error ends the hub, but for what is outside it: a target, a
// receiver or a disk that fails is told on the page and tried again.
//
// # Units
//
// As in the packages named. Times in the file are Go durations with days and weeks besides; sizes
// are those of package unit.
//
// # Sources
//
// systemd.exec(5) for the sandbox and the directories it names in the environment, sd_notify(3) for
// READY=1.
//
// # Limits
//
// One host: the one it runs on. It runs without privileges and on Linux; what only root may read
// comes through the socket of `linerate agent`.
package daemon
