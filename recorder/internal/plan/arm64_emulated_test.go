package plan

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/isa/arm64"
)

// buildARM64 makes a program of arm64 that needs no library.
func buildARM64(t testing.TB, source string, flags ...string) string {
	t.Helper()
	realtest.Need(t, realtest.Clang, realtest.LLD)
	out := filepath.Join(t.TempDir(), strings.TrimSuffix(source, ".c"))
	args := append([]string{"--target=aarch64-linux-gnu", "-nostdlib", "-static", "-fuse-ld=lld-19", "-o", out, filepath.Join("testdata", source)}, flags...)
	if text, err := exec.Command("clang-19", args...).CombinedOutput(); err != nil {
		t.Fatalf("clang-19 %v: %v\n%s", args, err, text)
	}
	return out
}

// emulated runs a program and calls visit with the address of each piece of code that begins where the one before has ended or branched to.
func emulated(t *testing.T, program string, visit func(pc uint64)) {
	t.Helper()
	realtest.Need(t, realtest.QEMUARM64)
	log := filepath.Join(t.TempDir(), "log")
	cmd := exec.Command("qemu-aarch64-static", "-cpu", "max", "-d", "exec,nochain", "-D", log, program)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s in an emulator: %v\n%s", program, err, text)
	}
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// Trace 0: 0x7f5647a00100 [0000000001009331/0000000000210268/00000001/00000200] _start
		if _, rest, ok := strings.Cut(lines.Text(), " ["); ok && strings.HasPrefix(lines.Text(), "Trace ") {
			fields := strings.Split(rest, "/")
			pc, err := strconv.ParseUint(fields[1], 16, 64)
			if err != nil {
				t.Fatalf("log: %q", lines.Text())
			}
			visit(pc)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// transfers holds what a program did against its plan: whoever leaves a function that is traced, other than by a call, must do so at one of its
// sites, and whoever comes to its first instruction goes through its entry's.
type transfers struct {
	im   *Image
	fns  []Function
	last uint64         // the beginning of the piece before, 0 for none
	left map[string]int // how often each function was left
}

func (tr *transfers) functionAt(addr uint64) int {
	for i := range tr.fns {
		if f := &tr.fns[i]; addr >= f.Addr && addr < f.Addr+f.Size {
			return i
		}
	}
	return -1
}

func (tr *transfers) come(t *testing.T, pc uint64) {
	from := tr.last
	tr.last = pc
	if from == 0 {
		return
	}
	for at := from; at-from < 4096; at += arm64.Len {
		if at != from && at == pc {
			return // a piece ended within a line
		}
		text := tr.im.textAt(at)
		var in arm64.Inst
		if text == nil || arm64.DecodeWord(&in, text.word(at)) != nil {
			t.Fatalf("%#x was run, and is no instruction", at)
		}
		to, direct := in.Target(at)
		switch {
		case in.Kind == arm64.Other || in.Kind == arm64.Syscall:
			continue
		case in.Kind == arm64.CondJump && to != pc && at+arm64.Len != pc:
			t.Fatalf("%#x leads to %#x, and control came to %#x", at, to, pc)
		case direct && in.Kind != arm64.CondJump && to != pc:
			t.Fatalf("%#x leads to %#x, and control came to %#x", at, to, pc)
		case in.Kind == arm64.Call || in.Kind == arm64.IndirectCall:
			return
		}
		fn := tr.functionAt(at)
		if fn < 0 || tr.fns[fn].Tier == TierNone {
			return
		}
		f := &tr.fns[fn]
		inside := pc >= f.Addr && pc < f.Addr+f.Size
		site := -1
		for i := range f.Sites {
			if f.Sites[i].Addr == at {
				site = i
			}
		}
		switch {
		case !inside && site < 0:
			t.Errorf("%s is left at %#x for %#x, where it has no site", f.Name, at, pc)
		case !inside && f.Sites[site].Exits() != 1:
			t.Errorf("%s is left at %#x for %#x, and its site there has no exit", f.Name, at, pc)
		case inside && in.Kind != arm64.CondJump && site >= 0 && f.Sites[site].Exits() != 0 && in.Kind != arm64.Return:
			t.Errorf("%s: the exit at %#x led to %#x, which is inside", f.Name, at, pc)
		}
		if !inside {
			tr.left[f.Name]++
		}
		return
	}
	t.Fatalf("a piece of code at %#x doesn't end", from)
}

func TestEveryWayThatAProgramOfARM64TakesOutIsASite(t *testing.T) {
	for _, flags := range [][]string{
		{"-O0"}, {"-O1"}, {"-O2"}, {"-Os"}, {"-O2", "-mllvm", "-min-jump-table-entries=4"}, {"-O2", "-fomit-frame-pointer", "-fno-asynchronous-unwind-tables"},
		{"-O2", "-mbranch-protection=standard"}, {"-O2", "-march=armv8.5-a", "-mbranch-protection=pac-ret+leaf+bti", "-mllvm", "-min-jump-table-entries=4"},
	} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			t.Parallel()
			program := buildARM64(t, "arm64_shapes.c", flags...)
			im := openTestImage(t, program)
			fns := planImage(t, im)
			by := shares(fns)
			tr := transfers{im: im, fns: fns, left: map[string]int{}}
			for i := range fns {
				// One goes on where an address leads that it computes and hands over.
				if f := &fns[i]; (f.Tier == TierNone) != (f.Name == "call_first_call") {
					t.Errorf("%s isn't traced: %v at %#x", f.Name, f.Reason, f.At)
				}
			}
			emulated(t, program, func(pc uint64) { tr.come(t, pc) })
			t.Logf("%d functions, %v; %d of them were left", len(fns), by, len(tr.left))
			for _, name := range []string{"by_table", "tail", "tail_by_pointer", "maybe", "loop", "threaded", "recursive", "first_adr", "first_literal",
				"first_branch", "only_ret", "only_jump", "by_x16", "twice_x16", "back_to_start", "save", "first_call"} {
				if tr.left[name] == 0 {
					t.Errorf("%s was never left", name)
				}
			}
		})
	}
}
