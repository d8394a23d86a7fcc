package process

import (
	"os"
	"syscall"
)

// A Command is a program for Launch to start.
type Command struct {
	Path string   // looked up in PATH when it holds no slash
	Args []string // the arguments, Args[0] being the program's name for itself; empty means {Path}
	Env  []string // "NAME=value"; nil means our own
	Dir  string   // working directory; empty means our own
	// Ignored are the signals that the command begins with ignoring. Others have their
	// default effect, except those that we ignore ourselves.
	Ignored []syscall.Signal
	// AtExec has Launch stop the program at its first instruction, where not even its
	// loader has run. Nothing may be done to it there but to look at it; any program
	// can be started so.
	AtExec bool
	// GoAtEntry has Launch stop a static Go program at its entry point, where it has no
	// thread pointer yet and TIDOffset finds none. Otherwise it can't be launched.
	GoAtEntry bool
	// Stdin, Stdout and Stderr are the command's; nil means the null device.
	Stdin, Stdout, Stderr *os.File
}

// An ExitStatus is how a launched program ended.
type ExitStatus struct {
	Code   int // what it gave to exit, if Signal is 0
	Signal int // what killed it, or 0
}
