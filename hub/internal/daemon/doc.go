// Package daemon is linerate-hub: it keeps the history of a host and shows it.
//
// # Model
//
// [Main] parses flags and a YAML file, and [Run] joins what other packages do. Every second it
// samples the host (package sample), appends the reading to the history (record) and sends it to
// remote write receivers (record/remote). Every minute it diagnoses the host without a peer (loop).
// Verdicts, changes, runs, reboots and links become events (timeline). Schedules measure other
// hosts (schedule), rules watch the history (alert), and the page and the APIs (web/api, web/page)
// show it behind one frame that decides which requests to serve (web).
//
// One goroutine samples and does nothing else, so that no query, target or receiver delays a
// sample. An error of a part ends the hub, except for what is outside it: the hub reports a failing
// target, receiver or disk on the page, and retries.
//
// # Units
//
// As in the packages named. Durations in the file are Go durations, with days and weeks besides;
// sizes are those of package unit.
//
// # Sources
//
// systemd.exec(5) for the sandbox and the directories in the environment, sd_notify(3) for READY=1.
//
// # Limits
//
// One host: the one it runs on. It runs without privileges and on Linux. Files that only root may
// read come through the socket of `linerate agent`.
package daemon
