package probe

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/callreel/callreel/isa/amd64"
)

// goTool is a large Go program that is there wherever these tests are run by the go command.
func goTool(t testing.TB) *Image {
	t.Helper()
	path, err := exec.LookPath("go")
	need(t, "go", err)
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	im := openTestImage(t, path)
	if im.Go == nil || im.Go.Unsupported != nil {
		need(t, "a static go command of a version that is known", os.ErrNotExist)
	}
	return im
}

// Of a Go program at least 95 % of the functions are traced, and more of what the compiler has made.
func TestGoProgramsAreTraced(t *testing.T) {
	fns := planImage(t, goTool(t))
	traced, assembly := 0, 0
	for i := range fns {
		switch {
		case fns[i].Tier != TierNone:
			traced++
		case fns[i].Reason == ReasonAssembly:
			assembly++
		}
	}
	t.Logf("%d of %d traced, %d from assembly files", traced, len(fns), assembly)
	if len(fns) < 1000 || 100*traced < 95*len(fns) {
		t.Errorf("%d of %d functions are traced", traced, len(fns))
	}
}

// The names in the symbol table are those of pclntab, at the same addresses.
func TestPclntabAgreesWithSymbols(t *testing.T) {
	im := goTool(t)
	syms, err := im.Object.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	at := map[uint64]bool{}
	for i := range im.Go.funcs {
		at[im.Go.funcs[i].start] = true
	}
	checked := 0
	for i := range syms {
		s := &syms[i]
		if s.Defined() && s.IsFunc() && s.Size > 0 && s.Name != "runtime.text" && s.Name != "runtime.etext" {
			checked++
			if !at[s.Addr] {
				t.Errorf("%s at %#x isn't in pclntab", s.Name, s.Addr)
			}
		}
	}
	if checked < 1000 {
		t.Errorf("only %d symbols", checked)
	}
}

// What stands in a Go function's sites: nothing is moved that may fault with a frame on the stack, no entry stands before the check
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
			s.swap(moved)
			if s.before != 0 {
				behind++
				if last := moved[s.before-1]; s.Addr != f.Addr || last.Inst.Kind != amd64.CondJump || last.Addr < f.Addr+4 {
					t.Errorf("%s: the event is due behind +%#x", f.Name, last.Addr-f.Addr)
				}
			} else if check && s.Role == RoleEntry && s.Addr < f.Addr+6 {
				t.Errorf("%s: entry at +%#x", f.Name, s.Addr-f.Addr)
			}
			if s.swapped != 0 {
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

// The room for an arena is fixed before its code is made; events of Go functions are inline, however many there are.
func TestGoStubsHaveRoom(t *testing.T) {
	im := goTool(t)
	fns := planImage(t, im)
	var all []Selected
	for i := range fns {
		if fns[i].Tier != TierNone {
			all = append(all, Selected{Function: &fns[i], Image: im, ID: uint32(len(all) + 1)})
		}
	}
	const base = 1 << 28
	for _, n := range []int{1, InlineLimit, len(all)} {
		code, err := Compile(base, Runtime{Gate: base - 4096, Ring: 1 << 40, Go: &GoRuntime{GoID: im.Go.GoID}}, all[:n], nil)
		if err != nil {
			t.Fatal(err)
		}
		if room := Bound(all[:n]); uint64(len(code.Bytes)) > room {
			t.Errorf("%d functions: %d bytes in room for %d", n, len(code.Bytes), room)
		}
	}
}

func TestGoIDIsKnownByVersion(t *testing.T) {
	for version, want := range map[string]int32{"go1.22": 152, "go1.23.4": 160, "go1.24rc1": 160, "go1.25.1": 152, "go1.26-devel": 152} {
		if got, err := goidOffset(version); err != nil || got != want {
			t.Errorf("%s: %d, %v", version, got, err)
		}
	}
	for _, version := range []string{"", "go1.21.9", "go1.27.0", "go2.0", "devel go1.26-abc", "go1.", "go1.26.1 X:boringcrypto"} {
		if got, err := goidOffset(version); err == nil {
			t.Errorf("%q: %d", version, got)
		}
	}
	if _, err := goidOffset(runtime.Version()); err != nil {
		t.Logf("this toolchain isn't known: %v", err)
	}
}

// A damaged pclntab is refused, or read, in bounded time, and never makes a panic.
func FuzzPclntab(f *testing.F) {
	head := make([]byte, pclnHeader+16+funcFixed+8)
	le := binary.LittleEndian
	le.PutUint32(head, pclnMagic)
	head[6], head[7] = 1, 8
	le.PutUint64(head[8:], 1)
	le.PutUint64(head[32:], pclnHeader+16+funcFixed)
	le.PutUint64(head[64:], pclnHeader)
	le.PutUint32(head[pclnHeader+4:], 16)
	le.PutUint32(head[pclnHeader+8:], 64)
	copy(head[pclnHeader+16+funcFixed:], "main.f\x00")
	f.Add(head)
	if got, err := (&pclntab{data: head, text: 0x1000, size: 64}).functions(); err != nil || len(got) != 1 || got[0].name != "main.f" || got[0].end != 0x1040 {
		f.Fatalf("%+v, %v", got, err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		began := time.Now()
		fns, err := (&pclntab{data: data, text: 0x1000, size: 64}).functions()
		for _, fn := range fns {
			if err == nil && (fn.start < 0x1000 || fn.end > 0x1040 || fn.start > fn.end) {
				t.Errorf("%+v", fn)
			}
		}
		if time.Since(began) > time.Minute {
			t.Error("it took more than a minute")
		}
	})
}
