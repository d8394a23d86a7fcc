package plan

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder/internal/discover"
	"github.com/callreel/callreel/recorder/internal/testimage"
)

func TestFunctionsOfARM64AreFoundWhereNothingNamesThem(t *testing.T) {
	realtest.Need(t, realtest.LLVMObjcopy)
	for _, level := range []string{"-O0", "-O2", "-Os"} {
		t.Run(level, func(t *testing.T) {
			named := buildARM64(t, "arm64_shapes.c", level, "-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
			real := map[uint64]string{}
			for _, f := range planImage(t, openTestImage(t, named)) {
				real[f.Addr] = f.Name
			}
			bare := filepath.Join(t.TempDir(), "bare")
			if text, err := exec.Command("llvm-objcopy-19", "--strip-all", named, bare).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			im := openTestImage(t, bare)
			found := 0
			for _, f := range planImage(t, im) {
				if real[f.Addr] == "" {
					t.Errorf("%#x is taken for a function by its %v", f.Addr, f.Found)
				}
				found++
			}
			t.Logf("%d of %d functions found, %.0f %% of the code", found, len(real), 100*float64(im.Coverage.Found)/float64(im.Coverage.Text))
			// What only a jump leads to isn't.
			if found < len(real)*3/4 {
				t.Errorf("%d of %d functions were found", found, len(real))
			}
		})
	}
}

// What an instruction loads from is data, and so is what holds no way out, whatever it looks like.
func TestDataOfARM64IsNoFunction(t *testing.T) {
	const base = 0x1000
	ldr := uint32(0xB9400000) // ldr w0, [x0]
	for _, c := range []struct {
		name  string
		code  []uint32 // the first two words are a function that is known
		found discover.Evidence
	}{
		{"called", []uint32{wordBL + 2, wordRet, wordMov, wordRet}, discover.Called},
		{"address taken", []uint32{wordAdrX0 + ahead19(2), wordRet, wordMov, wordRet}, discover.Pointed},
		{"read", []uint32{wordAdrX0 + ahead19(3), ldr, wordRet, wordMov, wordRet}, 0},
		{"no way out", []uint32{wordAdrX0 + ahead19(2), wordRet, wordMov, wordB + ahead(1000)}, 0},
		{"not code", []uint32{wordAdrX0 + ahead19(2), wordRet, wordData, wordRet}, 0},
		{"zeros", []uint32{wordAdrX0 + ahead19(2), wordRet, 0, wordRet}, 0},
		{"run into", []uint32{wordAdrX0 + ahead19(3), wordRet, wordMov, wordMov, wordRet}, 0},
		{"nothing leads there", []uint32{wordMov, wordRet, wordMov, wordRet}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			size := uint64(8)
			if c.name == "read" {
				size = 12
			}
			fns, _, err := planBytes(armed(testimage.Tiny(words(c.code...), []testimage.Symbol{{Name: "f", Addr: base, Size: size}})))
			if err != nil {
				t.Fatal(err)
			}
			var got discover.Evidence
			for i := range fns {
				got = max(got, fns[i].Found)
			}
			if got != c.found {
				t.Errorf("found by %v, want %v", got, c.found)
			}
		})
	}
}

func TestSearchInHostileCodeOfARM64TakesBoundedTime(t *testing.T) {
	// Each word is called by the one before, and nothing ends.
	var code []byte
	for range 1 << 16 {
		code = append(code, words(wordBL+1)...)
	}
	start := time.Now()
	fns, _, err := planBytes(armed(testimage.Tiny(code, []testimage.Symbol{{Name: "f", Addr: 0x1000, Size: 4}})))
	if d := time.Since(start); d > time.Minute {
		t.Errorf("%v", d)
	}
	t.Logf("%d functions, %v, %v", len(fns), err, time.Since(start))
}
