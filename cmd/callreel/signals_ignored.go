package main

import (
	"os/signal"
	"syscall"
)

// ignoredAtStart returns the signals that were ignored when this program began, for a command that it starts to ignore
// them, too, as it would without us: those of nohup and of sh's background jobs. It is to be called before any signal is
// asked for. Go's runtime keeps nothing of the others; SIGQUIT, which sh ignores together with SIGINT, follows it.
func ignoredAtStart() []syscall.Signal {
	var ignored []syscall.Signal
	if signal.Ignored(syscall.SIGHUP) {
		ignored = append(ignored, syscall.SIGHUP)
	}
	if signal.Ignored(syscall.SIGINT) {
		ignored = append(ignored, syscall.SIGINT, syscall.SIGQUIT)
	}
	return ignored
}
