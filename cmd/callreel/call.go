package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/invoke"
)

func newCall() *cobra.Command {
	var pid processID
	var f callFlags
	c := &cobra.Command{
		Use:   "call -p PID 'FUNCTION(ARGUMENT, …)'",
		Short: "Call a function in a running process, at a point where that does no harm",
		Long: `Call has a thread of a process call a C function, and prints what it returns. The thread is put back to where it was,
with all its registers; a system call that it waits in goes on waiting. The other threads run on all the while.

The function is one that the program or one of its libraries exports: IMAGE:FUNCTION chooses among several. Arguments
are C's: numbers such as -1, 0x10 and 2.5, 'c', true, false, NULL, "text\n", &symbol, &symbol+8, and libc.so.6+0x1f0.
A double must be written as one (2.0), unless the debug information of the function says that it is one.

The call is refused where it could harm the process: while every thread may hold a lock of the C library, as within
malloc, stdio or the loader, or runs code whose stack can't be walked to its end. Threads that wait are taken first.
What the function itself does is yours to know: a thread that runs, or waits in the middle of something, may hold a
lock of the program's own, and a function that wants it waits for ever.

A function that has not returned after --timeout is given up: the thread is put back with the function half done, as
soon as it holds no lock of the C library; else it is left in the function and comes back when that returns. What the
function had locked stays locked then, and what it had begun stays half done. --overdue says otherwise: back puts it
back at once, wherever it stands, and leave never. A function that crashes is given up, too, and one that would end
the process is kept from it.`,
		Example: `  callreel call -p 1234 'malloc_trim(0)'
  callreel call -p 1234 'getenv("HOME")'
  callreel call -p 1234 --type int 'libfoo.so.1:set_level(3, "all")'`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case pid == 0 || len(args) != 1:
				return usageError("callreel call: give -p PID and one call, such as 'malloc_trim(0)'; see callreel call --help")
			case f.kind != "" && !invoke.IsType(f.kind):
				return usageError("callreel call: --type %s: want one of %s", f.kind, invoke.Types)
			case f.timeout <= 0 || f.wait <= 0:
				return usageError("callreel call: --timeout and --wait take a time above 0")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := untilSignal(c.Context())
			defer stop()
			status := newStatus(c.ErrOrStderr())
			o, err := f.options(c.CommandPath(), pid, args[0], status)
			if err != nil {
				return err
			}
			r, err := invoke.Call(ctx, o)
			status.clear()
			if err != nil {
				return callError(o, err)
			}
			if r.WaitsAnew {
				c.PrintErrf("callreel call: thread %d waited with a timeout, which has begun anew\n", r.TID)
			}
			if f.asJSON {
				return callJSON(c.OutOrStdout(), r)
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), printable(r.Value.String()))
			return err
		},
	}
	c.ValidArgsFunction = cobra.NoFileCompletions
	fl := c.Flags()
	addPID(fl, &pid, "the process to call the function in, by its `PID`")
	fl.IntVar(&f.tid, "tid", 0, "only this thread, by its `TID`")
	fl.StringVar(&f.kind, "type", "", "what the result is, where it isn't known: `TYPE`\n"+strings.Replace(invoke.Types, "uchar", "\nuchar", 1))
	fl.DurationVar(&f.timeout, "timeout", invoke.DefaultTimeout, "how long the function may take")
	fl.DurationVar(&f.wait, "wait", invoke.DefaultWait, "how long to look for a point where it can be called")
	fl.Var(&f.overdue, "overdue", "when to put the thread back after the timeout: `safe|back|leave`")
	f.memory.add(fl)
	addDebugDirs(fl, &f.debugDirs)
	fl.BoolVar(&f.asJSON, "json", false, "write JSON")
	return c
}

// callFlags are those of call.
type callFlags struct {
	tid           int
	kind          string
	timeout, wait time.Duration
	overdue       overdueFlag
	memory        memoryLimit
	debugDirs     []string
	asJSON        bool
}

func (f *callFlags) options(verb string, pid processID, text string, status *status) (invoke.Options, error) {
	call, err := invoke.Parse(text)
	if err != nil {
		return invoke.Options{}, usageError("callreel call: %w", err)
	}
	files, err := newDebugFiles(verb, status, searched(int(pid), f.debugDirs))
	if err != nil {
		return invoke.Options{}, err
	}
	return invoke.Options{
		PID: int(pid), Call: call, TID: f.tid, Wait: f.wait, Timeout: f.timeout, Overdue: invoke.Overdue(f.overdue), Type: f.kind,
		DebugFiles: files, Memory: object.NewAllowance(f.memory.limit()),
	}, nil
}

// overdueFlag is what becomes of a thread whose function has not returned in time.
type overdueFlag invoke.Overdue

var overdueNames = [...]string{invoke.BackIfSafe: "safe", invoke.Back: "back", invoke.Leave: "leave"}

func (o *overdueFlag) String() string { return overdueNames[*o] }

func (o *overdueFlag) Type() string { return "safe|back|leave" }

// Set takes one of the names.
func (o *overdueFlag) Set(text string) error {
	for k, name := range overdueNames {
		if name == text {
			*o = overdueFlag(k)
			return nil
		}
	}
	return fmt.Errorf("%q is none of safe, back and leave", text)
}

// callError adds to an error what it means for the process.
func callError(o invoke.Options, err error) error {
	advice := ""
	switch {
	case errors.Is(err, invoke.ErrName), errors.Is(err, invoke.ErrArguments), errors.Is(err, invoke.ErrSyntax):
		return usageError("callreel call: %w", err)
	case errors.Is(err, process.ErrLeftInFunction):
		advice = "until then that thread does nothing else. Nothing has to be done when it returns."
	case errors.Is(err, process.ErrPutBack), errors.Is(err, process.ErrFunctionFault):
		advice = "what the function had locked stays locked, and what it had begun stays half done. Watch the process, and restart it\nwhen you can: it may come to stand still."
	case errors.Is(err, process.ErrFunctionEnds):
		advice = "exit handlers may have run already. Restart the process when you can."
	case errors.Is(err, process.ErrFunctionLeft):
		advice = "what called the function will not hear of its end."
	}
	if advice == "" {
		return fmt.Errorf("callreel call: %w", err)
	}
	return fmt.Errorf("callreel call: %s: %w\nWarning: %s", o.Call.Function, err, advice)
}

// callOutput is what --json prints of a call; the keys are promised.
type callOutput struct {
	Function  string            `json:"function"`
	Image     string            `json:"image"`
	Address   string            `json:"address"`
	TID       int               `json:"tid"`
	Thread    string            `json:"thread"`
	Where     string            `json:"where"`
	Type      string            `json:"type"`
	Value     any               `json:"value"` // a number, true or false, a text, an address as a string; null for void and NULL
	Cut       bool              `json:"cut,omitempty"`
	Registers map[string]string `json:"registers"`
	Took      int64             `json:"took_ns"`
	Stopped   float64           `json:"stopped_ms"`
	WaitsAnew bool              `json:"waits_anew"`
}

// resultRegisters are the processor's names of those in which functions return: the first and the second for integers, and the first for floats.
func resultRegisters() [3]string {
	if runtime.GOARCH == "arm64" {
		return [...]string{"x0", "x1", "v0"}
	}
	return [...]string{"rax", "rdx", "xmm0"}
}

func callJSON(w io.Writer, r *invoke.Result) error {
	names := resultRegisters()
	return writeJSON(w, callOutput{
		Function: r.Function, Image: r.Image, Address: fmt.Sprintf("%#x", r.Address), TID: r.TID, Thread: r.Thread, Where: r.Where,
		Type: r.Value.Type, Value: jsonValue(r.Value), Cut: r.Value.Cut,
		Registers: map[string]string{names[0]: fmt.Sprintf("%#x", r.Value.Bits), names[1]: fmt.Sprintf("%#x", r.Second), names[2]: fmt.Sprintf("%#x", r.Float)},
		Took:      int64(r.Took), Stopped: float64(r.Stopped) / 1e6, WaitsAnew: r.WaitsAnew,
	})
}

// jsonValue is a value as JSON has it.
func jsonValue(v invoke.Value) any {
	switch {
	case v.IsFloat:
		if v.Float != v.Float || v.Float-v.Float != 0 { // NaN and infinities have no JSON
			return fmt.Sprint(v.Float)
		}
		return v.Float
	case v.Type == "void", (v.Type == "ptr" || v.Type == "str") && v.Bits == 0:
		return nil
	case v.Type == "bool":
		return v.Number != 0
	case v.Type == "str" && v.Text != nil:
		return string(v.Text)
	case v.Type == "ptr", v.Type == "str", v.Type == "":
		return fmt.Sprintf("%#x", v.Bits)
	case v.Type == "ulong":
		return v.Bits
	}
	return v.Number
}
