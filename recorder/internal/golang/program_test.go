package golang

import (
	"os"
	"runtime"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder/internal/testimage"
)

// The names in the symbol table are those of pclntab, at the same addresses.
func TestPclntabAgreesWithSymbols(t *testing.T) {
	o := testimage.Open(t, testimage.GoTool(t))
	program := Read(o)
	if program == nil || program.Unsupported != nil {
		realtest.NeedThat(t, "a static go command of a version that is known", os.ErrNotExist)
	}
	syms, err := o.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	at := map[uint64]bool{}
	for i := range program.Functions {
		at[program.Functions[i].Start] = true
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

func TestGoIDIsKnownByVersion(t *testing.T) {
	for version, want := range map[string]int32{"go1.22": 152, "go1.23.4": 160, "go1.24rc1": 160, "go1.25.1": 152, "go1.26-devel": 152} {
		if got, _, err := offsets(version); err != nil || got != want {
			t.Errorf("%s: %d, %v", version, got, err)
		}
	}
	for _, version := range []string{"", "go1.21.9", "go1.27.0", "go2.0", "devel go1.26-abc", "go1.", "go1.26.1 X:boringcrypto"} {
		if got, _, err := offsets(version); err == nil {
			t.Errorf("%q: %d", version, got)
		}
	}
	if _, _, err := offsets(runtime.Version()); err != nil {
		t.Logf("this toolchain isn't known: %v", err)
	}
}
