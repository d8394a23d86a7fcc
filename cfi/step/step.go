package step

import (
	"errors"
	"os"
	"syscall"

	"github.com/callreel/callreel/cfi/lint"
	"github.com/callreel/callreel/process"
)

// ErrUnsupported is wrapped by the error of Run on systems other than linux/amd64 and linux/arm64.
var ErrUnsupported = process.ErrUnsupported

// ErrOtherProgram says that the command has executed another program, which was not followed.
var ErrOtherProgram = errors.New("executed another program, which is not followed")

// Options says what to run and what to look at.
type Options struct {
	Command []string // the program, looked up in PATH, and its arguments
	// Ignored are the signals that the command begins with ignoring.
	Ignored []syscall.Signal
	// Stdin, Stdout and Stderr are the command's; nil means the null device.
	Stdin, Stdout, Stderr *os.File

	// Module chooses images by the base name of their file; nil chooses all.
	Module func(name string) bool
	// Function chooses among the functions of these images by their names as the file has them. One that only an FDE
	// tells of is named by its link address, "0x1dd420". Nil chooses all.
	Function func(name string) bool
	// Ready is called once, when the functions were chosen and before the command begins. An error ends the run.
	Ready func() error

	// Memory bounds what the files of the process may make us keep of them, in bytes: see
	// object.Allowance. 0 is object.DefaultMemory.
	Memory int64

	// MaxSteps is after how many instructions the command runs on without being looked at; 0 means DefaultMaxSteps.
	MaxSteps uint64
}

// DefaultMaxSteps takes half a minute on a virtual machine, where a step was measured to cost 34 µs.
const DefaultMaxSteps = 1_000_000

// A Finding is an error that has shown, and the image that it is in.
type Finding struct {
	Module string // base name of the image's file
	lint.Finding
}

// Result is what a run gave.
type Result struct {
	Steps     uint64    // instructions that were compared with their rows
	Calls     uint64    // calls of chosen functions that were followed
	Chosen    int       // functions that were chosen
	Functions int       // those of them that were followed at least once
	Threads   int       // threads in which that was
	Findings  []Finding // by image and address
	Complete  bool      // MaxSteps was enough
	Problems  []error   // images that could not be looked at, and ErrOtherProgram

	ExitStatus process.ExitStatus // the command's
}
