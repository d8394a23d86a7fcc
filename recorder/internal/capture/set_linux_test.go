package capture

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/glob"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

const source = `
long __attribute__((noinline)) twice(long number) { return number * 2; }
void __attribute__((noinline)) nothing(const char *name) { __asm__("" : : "r"(name)); }
int main(int argc, char **argv) { nothing(argv[0]); return twice(argc); }
`

// program is a small one, with what may be probed of it.
func program(t *testing.T, flags ...string) *mapped.Image {
	t.Helper()
	realtest.Need(t, realtest.GCC)
	path := filepath.Join(t.TempDir(), "program")
	cmd := exec.Command("gcc", append([]string{"-x", "c", "-", "-o", path}, flags...)...)
	cmd.Stdin = strings.NewReader(source)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, said)
	}
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	im := &mapped.Image{Object: o}
	if im.Probe, err = plan.NewImage(o, "program"); err != nil {
		t.Fatal(err)
	}
	if im.Plan, err = im.Probe.Plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	return im
}

// take lets a set have the functions of an image that it asks for, their IDs from 1 on, and returns these by name.
func take(s *Set, im *mapped.Image) map[string]uint32 {
	ids := map[string]uint32{}
	for i := range im.Plan {
		f := &im.Plan[i]
		if !s.Wants(f.Names()) {
			continue
		}
		id := uint32(len(ids) + 1)
		ids[f.Name] = id
		s.Take(id, f.Names())
		im.Traced = append(im.Traced, stub.Probe{Function: f, Image: im.Probe, ID: id})
	}
	return ids
}

// told takes what is described.
type told []string

func (d *told) AddArguments(function uint32, atReturn bool, args []reel.Argument) error {
	for _, a := range args {
		*d = append(*d, fmt.Sprint(function, atReturn, a.Name))
	}
	return nil
}

func TestValuesAreWhatWasAskedFor(t *testing.T) {
	im := program(t, "-g", "-O1")
	s, err := New(Options{Args: []string{"twice(number)"}, Returns: []string{"twice"}, Conditions: []string{"number > 3"}})
	if err != nil {
		t.Fatal(err)
	}
	ids := take(s, im)
	if err := s.Plan(t.Context(), im, t.Errorf); err != nil {
		t.Fatal(err)
	}
	id := ids["twice"]
	if err := s.Check(nil, nil); err != nil || len(ids) != 1 || s.Table()[id].Reads() {
		t.Fatalf("%v of %v, reads %v", err, ids, s.Table()[id].Reads())
	}
	captures := s.Table()[id]
	if captures == nil || len(captures.Conditions) != 1 || len(captures.Entry.Fields) != 1 || len(captures.Return.Fields) != 1 {
		t.Fatalf("%+v", captures)
	}
	payload := binary.LittleEndian.AppendUint64(nil, 42)
	payload = append(payload, make([]byte, ring.PayloadBytes-len(payload))...)
	events := []reel.Event{reel.Entry(1, 1, id), reel.Entry(2, 1, id+1), reel.Exit(3, 1, id), reel.Exit(4, 1, id)}
	var d told
	decoder := s.For(&d)
	decode := func() ([]reel.ValueSet, func([]reel.Event) error) {
		return decoder.Decode(events, []ring.Payload{{Event: 0, Data: payload}, {Event: 1, Data: payload}, {Event: 3, Data: nil}})
	}
	sets, describe := decode()
	_, again := decode()
	if len(sets) != 2 || sets[0].Number != 0 || sets[0].Values[0].Bits != 42 ||
		sets[1].Number != 3 || sets[1].Values[0].State != reel.ValueState(stub.StateUnreadable) {
		t.Errorf("%+v", sets)
	}
	for i := range events {
		events[i].Word += 20 // the reel has other IDs
	}
	for _, f := range []func([]reel.Event) error{describe, again} {
		if err := f(events); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{fmt.Sprint(id+10, false, "number"), fmt.Sprint(id+10, true, "return")}; !slices.Equal(d, want) {
		t.Errorf("%q, not %q", d, want)
	}
	d = nil
	if err := s.For(&d).DescribeAll(); err != nil || len(d) != 2 {
		t.Errorf("%q, %v", d, err)
	}
	if sets, _ := s.For(nil).Decode(events, []ring.Payload{{Event: 0, Data: payload}}); sets != nil || s.For(nil).DescribeAll() != nil {
		t.Errorf("a reel that takes no values is given %+v", sets)
	}
}

func TestAnEmptySetAsksForNothing(t *testing.T) {
	s, err := New(Options{})
	if err != nil || !s.Empty() || s.Wants([]string{"main"}) || len(s.Table()) != 0 || s.Check(nil, nil) != nil {
		t.Fatalf("%+v, %v", s, err)
	}
	if err := s.Plan(t.Context(), &mapped.Image{}, t.Errorf); err != nil {
		t.Error(err)
	}
	// The target may write payloads that nobody has asked for.
	if got, _ := s.For(new(told)).Decode([]reel.Event{reel.Entry(1, 1, 1)}, []ring.Payload{{Data: make([]byte, ring.PayloadBytes)}}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestWhatIsNotUnderstoodIsRefused(t *testing.T) {
	for _, o := range []Options{
		{Args: []string{""}}, {Args: []string{"f)"}}, {Returns: []string{"f()"}}, {Conditions: []string{"f: a"}},
		{Conditions: []string{"a > 1"}},
	} {
		var wrong *Error
		if _, err := New(o); !errors.As(err, &wrong) || wrong.Flag == "" {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestWhatCannotBeRecordedIsSaid(t *testing.T) {
	im := program(t, "-g", "-O1")
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Args: []string{"twice(x)"}}, `--args twice: there is no argument "x": it has number`},
		{Options{Returns: []string{"nothing"}}, "--ret nothing: can't be recorded: the function returns nothing"},
		{Options{Conditions: []string{"twice: x == 1"}}, "--if twice: x == 1: there is no argument"},
	} {
		s, err := New(c.o)
		if err != nil {
			t.Fatal(err)
		}
		im.Traced = nil
		take(s, im)
		var wrong *Error
		if err := s.Plan(t.Context(), im, t.Errorf); !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, and not %s", err, c.want)
		}
		// Of a library that comes later it is only told.
		im.Traced = nil
		take(s, im)
		var notices []string
		s.PlanLate(t.Context(), im, true, func(format string, args ...any) { notices = append(notices, fmt.Sprintf(format, args...)) })
		if len(notices) != 1 || !strings.HasPrefix(notices[0], c.want) {
			t.Errorf("%q, and not %s", notices, c.want)
		}
	}
}

// Where stubs may not read the process's memory, values in registers are recorded still. Conditions aren't dropped: more calls would be
// recorded.
func TestValuesThatMayNotBeReadAreOmitted(t *testing.T) {
	im := program(t, "-g", "-O1")
	s, err := New(Options{Args: []string{"[nt][ow][ti]*"}, Conditions: []string{"nothing: name[0] == 1"}})
	if err != nil {
		t.Fatal(err)
	}
	ids := take(s, im)
	var notices []string
	s.PlanLate(t.Context(), im, false, func(format string, args ...any) { notices = append(notices, fmt.Sprintf(format, args...)) })
	if len(notices) != 1 || !strings.Contains(notices[0], ": nothing: ") || !strings.Contains(notices[0], "process_vm_readv") {
		t.Errorf("%q", notices)
	}
	if c := s.Table()[ids["twice"]]; c == nil || c.Reads() || len(c.Entry.Fields) != 1 {
		t.Errorf("%+v", c)
	}
	if c := s.Table()[ids["nothing"]]; c == nil || !c.Reads() || len(c.Entry.Fields) != 0 || len(c.Entry.Conditions) != 1 {
		t.Errorf("%+v", c)
	}
}

func TestAGlobMayMatchWhatCannotBeRecorded(t *testing.T) {
	im := program(t, "-g", "-O1")
	s, err := New(Options{Returns: []string{"[nt][ow][ti]*"}})
	if err != nil {
		t.Fatal(err)
	}
	ids := take(s, im)
	if err := s.Plan(t.Context(), im, t.Errorf); err != nil || s.Check(nil, nil) != nil {
		t.Error(err, s.Check(nil, nil))
	}
	if ids["nothing"] == 0 || s.Table()[ids["nothing"]] != nil || s.Table()[ids["twice"]] == nil {
		t.Errorf("%v of %v", s.Table(), ids)
	}
}

func TestWithoutDebugInformationRegistersAreRecorded(t *testing.T) {
	im := program(t, "-O1")
	s, err := New(Options{Args: []string{"twice"}})
	if err != nil {
		t.Fatal(err)
	}
	ids := take(s, im)
	var notices []string
	err = s.Plan(t.Context(), im, func(format string, args ...any) { notices = append(notices, fmt.Sprintf(format, args...)) })
	abi, registers := "System V ABI", 6
	if runtime.GOARCH == "arm64" {
		abi, registers = "AAPCS64", 8
	}
	if err != nil || len(notices) != 1 || !strings.Contains(notices[0], abi) {
		t.Errorf("%v, %q", err, notices)
	}
	if c := s.Table()[ids["twice"]]; c == nil || len(c.Entry.Fields) != registers {
		t.Errorf("%+v", c)
	}
}

func TestWhatNoFunctionHasIsAnError(t *testing.T) {
	for _, c := range []struct {
		o          Options
		flag, glob string
	}{
		{Options{Args: []string{"twise"}}, "--args", "twise"},
		{Options{Conditions: []string{"twise: x == 1"}}, "--if", "twise"},
	} {
		s, err := New(c.o)
		if err != nil {
			t.Fatal(err)
		}
		var none *glob.NoMatchError
		if err := s.Check([]string{"twice"}, nil); !errors.As(err, &none) || none.Flag != c.flag || none.Glob != c.glob || !slices.Equal(none.Near, []string{"twice"}) {
			t.Errorf("%+v: %v", c.o, err)
		}
		s.Refuse([]string{"twise"}, "too-short")
		var wrong *Error
		if err := s.Check(nil, nil); !errors.As(err, &wrong) || err.Error() != c.flag+" twise: twise can't be probed: too-short" {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
}

func TestOnlySomeFunctionsHaveCodeOfTheirOwn(t *testing.T) {
	im := program(t, "-g", "-O1")
	s, err := New(Options{Args: []string{"twice"}})
	if err != nil {
		t.Fatal(err)
	}
	take(s, im)
	fn := im.Traced[0]
	im.Traced = nil
	for id := range uint32(MaxFunctions + 1) {
		fn.ID = id + 1
		im.Traced = append(im.Traced, fn)
		s.Take(fn.ID, []string{"twice"})
	}
	var wrong *Error
	if err := s.Plan(context.Background(), im, t.Errorf); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "more than 1024 functions") {
		t.Error(err)
	}
	if len(s.Table()) != MaxFunctions {
		t.Errorf("%d functions", len(s.Table()))
	}
}

// Stubs of what was planned before may just be made, by another goroutine, when a library comes.
func TestATableThatStubsAreMadeByDoesNotChange(t *testing.T) {
	im := program(t, "-g", "-O1")
	s, err := New(Options{Args: []string{"twice"}})
	if err != nil {
		t.Fatal(err)
	}
	take(s, im)
	if err := s.Plan(t.Context(), im, t.Errorf); err != nil {
		t.Fatal(err)
	}
	before := s.Table()
	late := im.Traced[0]
	late.ID = 9
	im.Traced = []stub.Probe{late}
	s.Take(late.ID, []string{"twice"})
	s.PlanLate(t.Context(), im, true, t.Errorf)
	if len(before) != 1 || before[9] != nil {
		t.Errorf("the table is %v now", before)
	}
	if now := s.Table(); len(now) != 2 || now[1] != before[1] || now[9] == nil {
		t.Errorf("the new table is %v", now)
	}
}
