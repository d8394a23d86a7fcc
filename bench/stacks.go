package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/callreel/callreel/unwind"
)

// deepLevels is how many functions of bench/target/deep.cc are under one another where stacks
// are walked; those around them come on top.
const deepLevels = 60

// measureStacks walks stacks, and stops threads to take theirs.
func measureStacks(ctx context.Context, c config) []row {
	back, err := comeFirst()
	defer back()
	rows := walkByCFI.measure(ctx, c)
	rows = append(rows, walkByFramePointer.measure(ctx, c)...)
	rows = append(rows, measureStopped(ctx, c)...)
	if err != nil {
		rows[0].note += "; others could take the processor away: " + firstLine(err)
	}
	return rows
}

// A walkWay is a way to walk: ours over a snapshot of bench/target/deep.cc, the peers' over the
// own stack of a target that is built alike.
type walkWay struct {
	name, reach string
	flags       []string // of the compiler, for all
	walk        func(*unwind.Walker, *unwind.Snapshot, []unwind.Frame) ([]unwind.Frame, unwind.End)
	check       func([]unwind.Frame, unwind.End) error
	peers       []walkPeer // the first is what ratios are against
}

// A walkPeer is a walker that the target has inside.
type walkPeer struct {
	name, mode string // mode is the order that deep.cc knows
	calls      int    // of one measurement
	flags      []string
}

const walkCalls = 100_000 // of the fast ones in one measurement: some 20 ms

var withLibunwind = []string{"-DLIBUNWIND", "-lunwind"}

var walkByCFI = walkWay{
	name: "stack walk by CFI, warm", reach: "≤ 6 ns a frame", flags: []string{"-fomit-frame-pointer"},
	walk:  (*unwind.Walker).Walk,
	check: wholeByCFI,
	peers: []walkPeer{
		{"libunwind, unw_backtrace", "trace", walkCalls, withLibunwind},
		{"libunwind, unw_step", "step", walkCalls / 100, withLibunwind},
		{"libgcc, _Unwind_Backtrace", "libgcc", walkCalls / 50, nil},
	},
}

var walkByFramePointer = walkWay{
	name: "stack walk by frame pointer", reach: "≤ 2.5 ns a frame",
	flags: []string{"-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"},
	walk:  (*unwind.Walker).WalkFramePointers,
	check: throughAllLevels,
	peers: []walkPeer{{"loop in C", "fp", 2 * walkCalls, nil}},
}

// wholeByCFI says what is wrong with a walk that is to reach the outermost frame by call frame
// information alone: one that ends early would be cheaper.
func wholeByCFI(frames []unwind.Frame, end unwind.End) error {
	if !end.Complete() {
		return fmt.Errorf("the walk ended after %d frames: %v", len(frames), end)
	}
	for k := 1; k < len(frames); k++ {
		if frames[k].By != unwind.ByCFI {
			return fmt.Errorf("frame %#x was found by %v", frames[k].PC, frames[k].By)
		}
	}
	return nil
}

// throughAllLevels is for frame pointers, which what calls main has none of.
func throughAllLevels(frames []unwind.Frame, end unwind.End) error {
	if len(frames) < deepLevels {
		return fmt.Errorf("the walk ended after %d frames: %v", len(frames), end)
	}
	return nil
}

// A walkContender takes part in the rounds.
type walkContender struct {
	what   string
	took   []float64 // ns a frame, one figure a round
	frames int
	err    error
	round  func() (took float64, frames int, err error)
	end    func() error
}

func (w *walkWay) measure(ctx context.Context, c config) []row {
	all := []*walkContender{w.ours(ctx, c)}
	for _, p := range w.peers {
		all = append(all, w.contender(ctx, c, p))
	}
	for range c.rounds {
		for _, one := range all {
			if one.err != nil {
				continue
			}
			var took float64
			if took, one.frames, one.err = one.round(); one.err == nil {
				one.took = append(one.took, took)
			}
		}
	}
	var rows []row
	for k, one := range all {
		if one.end != nil {
			one.err = errors.Join(one.err, one.end())
		}
		r := row{what: w.name + ": " + one.what}
		if k == 0 {
			r.reach = w.reach
		}
		if one.err != nil {
			rows = append(rows, missing(r.what, r.reach, one.err))
			continue
		}
		r.value, r.note = fmt.Sprintf("%.2f ns a frame", median(one.took)), fmt.Sprintf("%d frames", one.frames)
		if against := all[1]; against.err == nil {
			r.ratio = ratioText(medianRatio(one.took, against.took))
		}
		rows = append(rows, r)
	}
	return rows
}

// ours walks a snapshot over and over.
func (w *walkWay) ours(ctx context.Context, c config) *walkContender {
	one := &walkContender{what: "callreel"}
	target, err := w.target(ctx, c, "callreel", nil)
	if err != nil {
		one.err = err
		return one
	}
	s, err := takeSnapshot(ctx, target.pid())
	if err != nil {
		one.err = errors.Join(err, target.end())
		return one
	}
	one.end = func() error { return errors.Join(s.close(), target.end()) }
	walker := unwind.NewWalker(unwind.Host(), s.images, unwind.Options{})
	frames, end := w.walk(walker, &s.thread, nil)
	one.err = w.check(frames, end)
	one.round = func() (float64, int, error) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var begun time.Duration
		for k := range walkCalls + walkCalls/20 {
			if k == walkCalls/20 {
				begun = threadCPU()
			}
			frames, _ = w.walk(walker, &s.thread, frames[:0])
		}
		took := threadCPU() - begun
		return float64(took.Nanoseconds()) / walkCalls / float64(len(frames)), len(frames), nil
	}
	return one
}

func (w *walkWay) contender(ctx context.Context, c config, p walkPeer) *walkContender {
	one := &walkContender{what: p.name}
	target, err := w.target(ctx, c, p.mode, p.flags)
	if err != nil {
		one.err = err
		return one
	}
	one.end = target.end
	one.round = func() (took float64, frames int, err error) {
		err = target.ask(p.mode+" "+strconv.Itoa(p.calls), &took, &frames)
		return took, frames, err
	}
	return one
}

// target builds deep.cc and starts it.
func (w *walkWay) target(ctx context.Context, c config, name string, flags []string) (*conversation, error) {
	path, err := buildTarget(ctx, c, "deep-"+name, "g++", "deep.cc", append(append([]string(nil), w.flags...), flags...)...)
	if err != nil {
		return nil, err
	}
	return startDeep(ctx, path, deepLevels)
}

// startDeep starts a program made of deep.cc and returns once it takes orders.
func startDeep(ctx context.Context, path string, levels int, args ...string) (*conversation, error) {
	t, err := converse(ctx, path, append([]string{strconv.Itoa(levels)}, args...)...)
	if err != nil {
		return nil, err
	}
	if _, err := t.hear(); err != nil {
		return nil, errors.Join(err, t.kill())
	}
	return t, nil
}
