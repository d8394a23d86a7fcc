package plan

import (
	"bytes"
	"os"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/testimage"
)

// goTool is a large Go program that is there wherever these tests are run by the go command.
func goTool(t testing.TB) *Image {
	t.Helper()
	im := openTestImage(t, testimage.GoTool(t))
	if im.Go == nil || im.Go.Unsupported != nil {
		realtest.NeedThat(t, "a static go command of a version that is known", os.ErrNotExist)
	}
	return im
}

// goProgram builds a small Go program without C code, and plans it.
func goProgram(t *testing.T, text string, flags ...string) (*Image, []Function) {
	t.Helper()
	im := openTestImage(t, realtest.BuildGoSource(t, text, nil, flags...))
	if im.Go == nil || im.Go.Unsupported != nil {
		t.Fatalf("it isn't taken for a Go program that can be probed: %+v", im.Go)
	}
	return im, planImage(t, im)
}

const helloProgram = "package main\nimport \"fmt\"\nfunc main() { fmt.Println(\"hello\") }\n"

// Of a Go program at least 95 % of the functions are traced, of a small one, which is mostly runtime, too, stripped or not.
func TestGoProgramsAreTraced(t *testing.T) {
	check := func(t *testing.T, fns []Function) {
		reasons := map[Reason]int{}
		for i := range fns {
			reasons[fns[i].Reason]++
		}
		t.Logf("%d of %d traced, the others: %v", reasons[ReasonNone], len(fns), reasons)
		if len(fns) < 1000 || 100*reasons[ReasonNone] < 95*len(fns) {
			t.Errorf("%d of %d functions are traced", reasons[ReasonNone], len(fns))
		}
	}
	t.Run("go", func(t *testing.T) { check(t, planImage(t, goTool(t))) })
	for name, flags := range map[string][]string{"static": nil, "stripped": {"-ldflags=-s -w"}} {
		t.Run(name, func(t *testing.T) {
			_, fns := goProgram(t, helloProgram, flags...)
			check(t, fns)
		})
	}
}

// Functions of the runtime that change stacks, begin or end threads, or are called by conventions of their own are left alone.
func TestGoRuntimeAssemblyIsLeftAlone(t *testing.T) {
	fns := planImage(t, goTool(t))
	tier := map[string]Tier{}
	for i := range fns {
		tier[fns[i].Name] = max(tier[fns[i].Name], fns[i].Tier)
	}
	alone := []string{"runtime.rt0_go", "runtime.mstart", "runtime.gogo", "gogo", "runtime.mcall", "runtime.systemstack_switch",
		"runtime.morestack", "runtime.morestack_noctxt", "runtime.goexit", "runtime.sigtramp", "runtime.clone", "runtime.settls",
		"runtime.asyncPreempt", "runtime.exitThread", "runtime.gcWriteBarrier1", "gcWriteBarrier", "runtime.spillArgs",
		"runtime.unspillArgs", "syscall.rawVforkSyscall", "callRet", "p256SubInternal"}
	for _, name := range alone {
		if got, there := tier[name]; got != TierNone {
			t.Errorf("%s is traced", name)
		} else if !there {
			t.Errorf("there is no %s", name)
		}
	}
	for _, name := range []string{"runtime.memmove", "runtime.futex", "cmpbody", "runtime.call64", "time.now", "crypto/internal/fips140/sha256.blockSHANI"} {
		if tier[name] == TierNone {
			t.Errorf("%s isn't traced", name)
		}
	}
}

// What is in a Go function's sites: nothing is moved that may fault with a frame on the stack, no entry comes before the check
// whether the stack is large enough, and control never comes to where the runtime has no entry for the PC, or that of another place.
func TestGoSitesLeaveFaultsAndStackChecksAlone(t *testing.T) {
	im := goTool(t)
	fns := planImage(t, im)
	framed, behind, swapped := 0, 0, 0
	for i := range fns {
		f := &fns[i]
		text := im.textAt(f.Addr)
		check := bytes.HasPrefix(text.data[f.Addr-text.start:], []byte{0x49, 0x3B, 0x66, 0x10}) // cmp rsp, [r14+16]
		if check {
			framed++
		}
		for _, s := range f.Sites {
			if s.Island != 0 {
				t.Errorf("%s: an island at %#x", f.Name, s.Island)
			}
			moved := im.Moved(&s, nil)
			if s.Before != 0 {
				behind++
				if last := moved[s.Before-1]; s.Addr != f.Addr || last.Inst.Kind != amd64.CondJump || last.Addr < f.Addr+4 {
					t.Errorf("%s: the event is due behind +%#x", f.Name, last.Addr-f.Addr)
				}
			} else if check && s.Role == RoleEntry && s.Addr < f.Addr+6 {
				t.Errorf("%s: entry at +%#x", f.Name, s.Addr-f.Addr)
			}
			if s.Reordered() {
				swapped++
				returnOnTop(t, im, f, &s, moved)
				continue
			}
			for _, m := range moved {
				if check && mayFaultElsewhere(&m.Inst) {
					t.Errorf("%s: +%#x is moved and may fault", f.Name, m.Addr-f.Addr)
				}
			}
		}
	}
	if framed < 1000 || behind < 10 || swapped < 10 {
		t.Errorf("only %d functions with a check, %d events behind it, %d instructions that have changed places", framed, behind, swapped)
	}
}

func mayFaultElsewhere(in *amd64.Inst) bool {
	own := in.Base == int8(amd64.RSP) || in.Base == int8(amd64.RBP) || in.Base == int8(amd64.R14) || in.RIPRelative
	return in.MayFault() && !own
}

// returnOnTop checks that what may fault runs where the return address is on top of the stack: at the function's start with nothing
// pushed, or just before the return.
func returnOnTop(t *testing.T, im *Image, f *Function, s *Site, moved []Moved) {
	for i, m := range moved {
		if !mayFaultElsewhere(&m.Inst) {
			continue
		}
		first := i == 0 && s.Addr == f.Addr
		last := i == len(moved)-2 && moved[i+1].Inst.Kind == amd64.Return
		if !first && !last {
			t.Errorf("%s: +%#x is moved, and runs with a frame on the stack", f.Name, m.Addr-f.Addr)
		}
	}
}
