package plan

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// compilerLabel is a label that a compiler has put where it wants to jump.
var compilerLabel = regexp.MustCompile(`^\.L\d+$|^\.LBB\d+_\d+$|^\.L(BB|tmp)?\d+$`)

// The compiler says where its labels are; the plan is made of a copy that doesn't tell.
func TestNoLabelLiesInsideASite(t *testing.T) {
	realtest.Need(t, realtest.AMD64)
	objcopy := realtest.Tool(t, realtest.Objcopy)
	labels := 0
	for _, compiler := range []string{"gcc", "clang-19"} {
		path, err := exec.LookPath(compiler)
		if err != nil && compiler != "gcc" {
			continue // one compiler is enough for a machine
		}
		realtest.NeedThat(t, compiler, err)
		for _, flags := range []string{
			"-O0 -no-pie", "-O1 -fPIE -pie", "-O2 -fPIE -pie", "-O2 -no-pie", "-O3 -fPIE -pie", "-Os -no-pie", "-Os -fPIE -pie",
			"-O2 -no-pie -Wl,-z,noseparate-code", "-O2 -fPIE -pie -fomit-frame-pointer -fcf-protection", "-O2 -fPIE -pie -fno-asynchronous-unwind-tables",
		} {
			t.Run(compiler+" "+flags, func(t *testing.T) {
				dir := t.TempDir()
				full, bare := filepath.Join(dir, "full"), filepath.Join(dir, "bare")
				args := append(strings.Fields(flags), "-w", "-save-temps=obj", "-Wa,-L", "-Wl,--discard-none", "-o", full, "testdata/labels.c")
				if compiler != "gcc" {
					args = append(args, "-fno-integrated-as")
				}
				if msg, err := exec.Command(path, args...).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, msg)
				}
				if msg, err := exec.Command(objcopy, "--strip-all", "--wildcard", full, bare).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, msg)
				}
				tables := tableLabels(t, dir)
				labels += checkLabels(t, full, bare, tables)
				// With names, but without the labels.
				if msg, err := exec.Command(objcopy, "--wildcard", "--strip-symbol=.L*", full, bare).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, msg)
				}
				labels += checkLabels(t, full, bare, tables)
			})
		}
	}
	if labels < 1000 {
		t.Errorf("only %d labels were seen", labels)
	}
}

// tableEntry is a label's address, or its distance from another, in data.
var tableEntry = regexp.MustCompile(`(?m)^\s*\.(?:long|quad)\s+(\.L\w+)`)

// tableLabels are the labels that jump tables, and other data, hold, as the compiler's assembly says.
func tableLabels(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.s"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no assembly: %v", err)
	}
	labels := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range tableEntry.FindAllSubmatch(text, -1) {
			labels[string(m[1])] = true
		}
	}
	if len(labels) == 0 {
		t.Fatal("no label in a table")
	}
	return labels
}

// checkLabels plans bare and returns how many labels full has. Those that jumps alone lead to may be inside a site if the jumps
// are led to their copies; those that tables hold may not.
func checkLabels(t *testing.T, full, bare string, tables map[string]bool) (n int) {
	t.Helper()
	file, err := elf.Open(full)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	im := openTestImage(t, bare)
	fns := planImage(t, im)
	inside, led := map[uint64]uint64{}, map[uint64]bool{}
	traced := 0
	for i := range fns {
		if fns[i].Tier != TierNone {
			traced++
		}
		for _, s := range fns[i].Sites {
			for _, m := range im.Moved(&s, nil) {
				led[m.Addr] = led[m.Addr] || m.Target
			}
			for a := s.Addr + 1; a < s.End(); a++ {
				inside[a] = s.Addr
			}
		}
	}
	for _, s := range symbols {
		if compilerLabel.MatchString(s.Name) && im.textAt(s.Value) != nil {
			n++
			if site, ok := inside[s.Value]; ok && (!led[s.Value] || tables[s.Name]) {
				t.Errorf("%s: the label %s at %#x is inside the site at %#x", filepath.Base(bare), s.Name, s.Value, site)
			}
		}
	}
	t.Logf("%d labels, %d of %d functions traced: %v", n, traced, len(fns), shares(fns))
	return n
}
