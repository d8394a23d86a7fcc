package crash

import (
	"encoding/hex"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// dumped is a line of objdump with an address, bytes and text.
var dumped = regexp.MustCompile(`(?m)^ *([0-9a-f]+):\t((?:[0-9a-f]{2} )+) *\t(\S.*)$`)

// The C library's string functions for new processors are where programs with bad pointers crash.
func TestVectorInstructionsReadAsObjdumpHasThem(t *testing.T) {
	realtest.Need(t, realtest.AMD64, realtest.Objdump)
	out, err := exec.Command("objdump", "-d", "-w", "/lib/x86_64-linux-gnu/libc.so.6").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen, known, wrong := 0, 0, 0
	for _, m := range dumped.FindAllStringSubmatch(string(out), -1) {
		want, _, _ := strings.Cut(m[3], "#")
		want = strings.Join(strings.Fields(strings.TrimPrefix(want, "{evex} ")), " ")
		code, err := hex.DecodeString(strings.ReplaceAll(m[2], " ", ""))
		if err != nil || code[0] != 0xc4 && code[0] != 0xc5 && code[0] != 0x62 || strings.Contains(want, "(bad)") {
			continue
		}
		pc, err := strconv.ParseUint(m[1], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		seen++
		got, size := x86Instruction(code, pc, 64)
		switch {
		case got == "(not known)":
		case got != want || size != len(code):
			if wrong++; wrong < 20 {
				t.Errorf("%x is %q of %d bytes, objdump has %q", code, got, size, want)
			}
		default:
			known++
		}
	}
	if seen < 1000 || known*100 < seen*99 {
		t.Errorf("%d of %d instructions are known, %d are wrong", known, seen, wrong)
	}
	t.Logf("%d of %d instructions are known, %d are wrong", known, seen, wrong)
}
