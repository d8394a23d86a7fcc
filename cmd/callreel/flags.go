package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder"
)

// choiceFlags choose functions.
type choiceFlags struct {
	modules, functions, exclude []string
	minSize                     size
	noFound                     found
	memory                      memoryLimit
	debugDirs                   []string
}

func (f *choiceFlags) add(fl *pflag.FlagSet) {
	fl.StringArrayVarP(&f.modules, "module", "m", nil, "only this `MODULE`: the base name of its file, or a glob (repeatable)")
	fl.StringArrayVarP(&f.functions, "function", "f", nil, "only functions that match this `GLOB` (repeatable)")
	fl.StringArrayVarP(&f.exclude, "exclude", "x", nil, "no functions that match this `GLOB` (repeatable)")
	fl.Var(&f.minSize, "min-size", "no functions smaller than `BYTES`")
	fl.Var(&f.noFound, "found", "look for functions without symbols in the code, too: `yes|no`")
	f.memory.add(fl)
	addDebugDirs(fl, &f.debugDirs)
}

// found is the flag that says whether functions are looked for in code; true is no.
type found bool

func (f *found) String() string {
	if *f {
		return "no"
	}
	return "yes"
}

func (f *found) Type() string { return "yes" }

// Set takes yes or no.
func (f *found) Set(text string) error {
	switch text {
	case "yes", "true":
		*f = false
	case "no", "false":
		*f = true
	default:
		return fmt.Errorf("%q is neither yes nor no", text)
	}
	return nil
}

// choice is what they choose of a process, 0 if there is none yet. verb is for errors; status shows what is fetched.
func (f *choiceFlags) choice(verb string, pid processID, status *status) (recorder.Choice, error) {
	c := recorder.Choice{Modules: f.modules, Functions: f.functions, Exclude: f.exclude, MinSize: uint64(f.minSize), NoFound: bool(f.noFound), Memory: f.memory.limit()}
	files, err := newDebugFiles(verb, status, searched(int(pid), f.debugDirs))
	if err == nil {
		c.DebugFiles = files
	}
	return c, err
}

// processID is a flag that takes the ID of a process; 0 is none given.
type processID int

func (p *processID) String() string {
	if *p == 0 {
		return ""
	}
	return strconv.Itoa(int(*p))
}

func (p *processID) Type() string { return "PID" }

// Set reads a decimal number above 0.
func (p *processID) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n == 0 {
		return fmt.Errorf("%q is not a process ID", text)
	}
	*p = processID(n)
	return nil
}

// processIDs is a flag that takes the ID of a process each time it is given.
type processIDs []int

func (p *processIDs) String() string {
	var all []string
	for _, pid := range *p {
		all = append(all, strconv.Itoa(pid))
	}
	return strings.Join(all, ",")
}

func (p *processIDs) Type() string { return "PID" }

// Set adds one.
func (p *processIDs) Set(text string) error {
	var pid processID
	if err := pid.Set(text); err != nil {
		return err
	}
	*p = append(*p, int(pid))
	return nil
}

// addPID adds -p.
func addPID(fl *pflag.FlagSet, pid *processID, usage string) { fl.VarP(pid, "pid", "p", usage) }

// memoryLimit is the flag that bounds what a file or a process may make us keep of it.
type memoryLimit struct{ bytes size }

func (m *memoryLimit) add(fl *pflag.FlagSet) {
	fl.Var(&m.bytes, "memory-limit", "how much memory damaged or hostile files may take (default 256M, more for large files)")
}

// limit is the flag in bytes, 0 for the default.
func (m *memoryLimit) limit() int64 { return int64(min(m.bytes, 1<<62)) }

// opener opens a file, and what belongs to it, within the limit.
func (m *memoryLimit) opener() object.Opener {
	return object.Opener{Memory: object.NewAllowance(m.limit())}
}

// oneFile asks for one argument, in words.
func oneFile(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError("%s: give one FILE; see %s --help", c.CommandPath(), c.CommandPath())
	}
	return nil
}

// noArguments refuses arguments, in words.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError("%s: %q: no argument is expected; see %s --help", c.CommandPath(), args[0], c.CommandPath())
	}
	return nil
}

// size is a flag in bytes that takes K, M and G, powers of 1024.
type size uint64

func (s *size) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(*s), 10)
}

func (s *size) Type() string { return "SIZE" }

// Set reads a number with one of K, M, G or none behind it; "B" and "iB" may follow the letter.
func (s *size) Set(text string) error {
	number := strings.TrimRight(text, "KkMmGgBbi")
	shift, known := map[string]uint{
		"": 0, "b": 0,
		"k": 10, "kb": 10, "kib": 10,
		"m": 20, "mb": 20, "mib": 20,
		"g": 30, "gb": 30, "gib": 30,
	}[strings.ToLower(text[len(number):])]
	v, err := strconv.ParseUint(number, 10, 64)
	if err != nil || !known || v > math.MaxInt64>>shift {
		return fmt.Errorf("%q is not a size: a number, with K, M or G behind it", text)
	}
	*s = size(v << shift)
	return nil
}
