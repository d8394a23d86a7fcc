package lint

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// patched builds a library of correct functions, lets change alter its bytes, and lints it. change gets the whole file
// and the offsets of .eh_frame and .eh_frame_hdr in it.
func patched(t testing.TB, change func(file []byte, frame, hdr *object.Section)) *Result {
	t.Helper()
	realtest.Need(t, realtest.AMD64, realtest.GCC)
	path := assemble(t, unusual[:2], "")
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	im, err := object.Parse(path, bytes.Clone(file))
	if err != nil {
		t.Fatal(err)
	}
	change(file, im.Section(".eh_frame"), im.Section(".eh_frame_hdr"))
	if im, err = object.Parse(path, file); err != nil {
		t.Fatal(err)
	}
	r, err := Check(im)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// add32 adds to a little-endian number.
func add32(b []byte, n int32) {
	binary.LittleEndian.PutUint32(b, binary.LittleEndian.Uint32(b)+uint32(n))
}

func TestErrorsOfTablesAreFound(t *testing.T) {
	const entries = 12 // offset of the search table in the header
	for _, test := range []struct {
		name   string
		change func(file []byte, frame, hdr *object.Section)
		kinds  []Kind
		says   string
	}{
		{"nothing", func([]byte, *object.Section, *object.Section) {}, nil, ""},
		{"header of another section", func(file []byte, _, hdr *object.Section) {
			add32(file[hdr.Off+4:], 4)
		}, []Kind{WrongHeader}, ".eh_frame is at"},
		{"header that cannot be read", func(file []byte, _, hdr *object.Section) {
			file[hdr.Off] = 9
		}, []Kind{WrongHeader}, "version 9"},
		{"entry with a wrong start", func(file []byte, _, hdr *object.Section) {
			add32(file[hdr.Off+entries+8:], 1)
		}, []Kind{WrongHeader, WrongHeader}, "no entry"},
		{"entry of no FDE", func(file []byte, _, hdr *object.Section) {
			add32(file[hdr.Off+entries+12:], 4)
		}, []Kind{WrongHeader}, "entry 1 names an FDE"},
		{"entries in disorder", func(file []byte, _, hdr *object.Section) {
			table := file[hdr.Off+entries:]
			first := bytes.Clone(table[:8])
			copy(table[:8], table[8:16])
			copy(table[8:16], first)
		}, []Kind{WrongHeader}, "begins before"},
		{"one entry too few", func(file []byte, _, hdr *object.Section) {
			add32(file[hdr.Off+8:], -1)
		}, []Kind{WrongHeader}, "no entry"},
		{"overlapping FDEs", func(file []byte, frame, _ *object.Section) {
			add32(lengthOf(file, frame, 0), 18)
		}, []Kind{Overlap}, "FDEs for"},
		{"FDE that ends within padding", func(file []byte, frame, _ *object.Section) {
			add32(lengthOf(file, frame, 0), 1)
		}, []Kind{SplitInsn}, "an FDE for"},
		{"FDE that ends within an instruction", func(file []byte, frame, _ *object.Section) {
			add32(lengthOf(file, frame, 1), -1)
		}, []Kind{SplitInsn}, "an FDE for"},
		{"FDE that ends before the code does", func(file []byte, frame, _ *object.Section) {
			add32(lengthOf(file, frame, 2), -1)
		}, []Kind{NoCFI}, "an FDE for"},
		{"FDE of no code", func(file []byte, frame, _ *object.Section) {
			add32(lengthOf(file, frame, 2), 1<<20)
		}, []Kind{OutsideCode}, "an FDE for"},
		{"record with a wrong length", func(file []byte, frame, _ *object.Section) {
			binary.LittleEndian.PutUint32(file[frame.Off:], 1<<24)
		}, []Kind{Damaged}, "record at 0x0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := patched(t, test.change).Findings
			said := false
			kinds := map[Kind]int{}
			for _, f := range got {
				kinds[f.Kind]++
				said = said || strings.Contains(f.Says, test.says)
			}
			for _, k := range test.kinds {
				kinds[k]--
			}
			for k, n := range kinds {
				// A table that is lost leaves all functions without one, and the header without FDEs.
				if n != 0 && test.name != "record with a wrong length" {
					t.Errorf("%d of kind %s too many: %+v", n, k, got)
				}
			}
			if !said && test.says != "" {
				t.Errorf("nothing says %q: %+v", test.says, got)
			}
		})
	}
}

// lengthOf returns the bytes that hold the length of the code of the n-th FDE.
func lengthOf(file []byte, frame *object.Section, n int) []byte {
	data := file[frame.Off : frame.Off+frame.Size]
	for at := 0; ; at += 4 + int(binary.LittleEndian.Uint32(data[at:])) {
		if binary.LittleEndian.Uint32(data[at+4:]) == 0 {
			continue // a CIE
		}
		if n--; n < 0 {
			return data[at+12:]
		}
	}
}

// TestWrongInitialRulesShowInEveryFunction changes the CIE: that calls enter the functions is known from elsewhere.
func TestWrongInitialRulesShowInEveryFunction(t *testing.T) {
	r := patched(t, func(file []byte, frame, _ *object.Section) {
		data := file[frame.Off : frame.Off+frame.Size]
		at := bytes.Index(data, []byte{0x0c, 7, 8})
		data[at+2] = 16
	})
	names := map[string]bool{}
	for _, f := range r.Findings {
		if f.Kind == WrongCFA && f.Says == "cfa=rsp+16" && f.Truth == "cfa=rsp+8" {
			names[f.Function] = true
		}
	}
	for _, name := range []string{"ext", unusual[0].name, unusual[1].name} {
		if !names[name] {
			t.Errorf("%s has no finding in %+v", name, r.Findings)
		}
	}
}

// TestTablesThatDescribeCodeOverAndOverAreReadOnce has thousands of FDEs for one large piece of code: were each followed,
// that would take hours.
func TestTablesThatDescribeCodeOverAndOverAreReadOnce(t *testing.T) {
	realtest.Need(t, realtest.AMD64, realtest.GCC)
	const again = 20000
	path := assemble(t, nil, fmt.Sprintf(`
	.globl long
	.hidden long
	.type long, @function
long:	.fill 1000000, 1, 0x90
	ret
	.size long, .-long
	.section .eh_frame,"a",@progbits
cie:	.long 9f-8f
8:	.long 0
	.byte 1
	.asciz "zR"
	.byte 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1
	.p2align 2
9:	.rept %d
	.long 7f-6f
6:	.long .-cie
	.long long-.
	.long 1000001
	.byte 0, 0, 0, 0
7:
	.endr
`, again), "-Wl,--no-eh-frame-hdr")
	r := checkFile(t, path)
	overlaps := 0
	for _, f := range r.Findings {
		if f.Kind == Overlap {
			overlaps++
		}
	}
	if r.FDEs != again+1 || overlaps != again-1 {
		t.Errorf("%d FDEs, %d findings of overlaps, want %d", r.FDEs, overlaps, again-1)
	}
}

func TestFilesWithoutCFIAreRefused(t *testing.T) {
	realtest.Need(t, realtest.GCC)
	path := build(t, realtest.GCC, "int f(int a) { return a; }", ".c", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-Wl,--build-id=none")
	im, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	if r, err := Check(im); !errors.Is(err, cfi.ErrNone) {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestObjectFilesAreRefused(t *testing.T) {
	realtest.Need(t, realtest.GCC)
	path := build(t, realtest.GCC, "int f(int a) { return a; }", ".c", "-c")
	im, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	if r, err := Check(im); !errors.Is(err, cfi.ErrNotLinked) {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestSARIFListsEveryFinding(t *testing.T) {
	findings := []Finding{
		{Kind: WrongCFA, Function: "f", Address: 0x1010, Says: "cfa=rsp+8", Truth: "cfa=rsp+16", Directive: ".cfi_adjust_cfa_offset 8"},
		{Kind: NoCFI, Address: 0x2000, Says: "nothing", Truth: "a function of 8 bytes"},
	}
	var b bytes.Buffer
	if err := WriteSARIF(&b, "a dir/x.so", "1", findings, strings.ToUpper); err != nil {
		t.Fatal(err)
	}
	var log sarifLog
	d := json.NewDecoder(&b)
	d.DisallowUnknownFields()
	if err := d.Decode(&log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || len(log.Runs) != 1 || len(log.Runs[0].Results) != 2 {
		t.Fatalf("%+v", log)
	}
	rules := log.Runs[0].Tool.Driver.Rules
	for k, r := range log.Runs[0].Results {
		if rules[r.RuleIndex].ID != r.RuleID || r.RuleID != string(findings[k].Kind) {
			t.Errorf("result %d has rule %d, %s", k, r.RuleIndex, r.RuleID)
		}
		at := r.Locations[0].Physical
		if at.Artifact.URI != "a%20dir/x.so" || uint64(at.Address.Absolute) != findings[k].Address {
			t.Errorf("result %d is at %+v", k, at)
		}
	}
	if first := log.Runs[0].Results[0]; first.Locations[0].Logical[0].Name != "F" || first.Properties.Directive == "" || !strings.Contains(first.Message.Text, "cfa=rsp+16") {
		t.Errorf("%+v", first)
	}
}

// FuzzCheck lints files of which any byte may be changed.
func FuzzCheck(f *testing.F) {
	_, missing := realtest.GCC.Find()
	if _, err := realtest.AMD64.Find(); err == nil && missing == nil {
		for _, source := range [][]deliberate{deliberateErrors, unusual} {
			file, err := os.ReadFile(assemble(f, source, ""))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(file)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		im, err := object.Parse("fuzzed", file)
		if err != nil {
			return
		}
		r, err := Check(im)
		if err != nil {
			return
		}
		for k := 1; k < len(r.Findings); k++ {
			if r.Findings[k-1].Address > r.Findings[k].Address {
				t.Fatal("findings are not in order")
			}
		}
	})
}

// TestDamageNeverPanics flips bits and cuts the file all over.
func TestDamageNeverPanics(t *testing.T) {
	realtest.Need(t, realtest.AMD64, realtest.GCC)
	file, err := os.ReadFile(assemble(t, append(unusual[:len(unusual):len(unusual)], deliberateErrors...), ""))
	if err != nil {
		t.Fatal(err)
	}
	lint := func(b []byte) {
		if im, err := object.Parse("damaged", b); err == nil {
			_, _ = Check(im)
		}
	}
	for at := range file {
		if at%5 == 0 {
			b := bytes.Clone(file)
			b[at] ^= 1 << (at % 8)
			lint(b)
		}
		if at%64 == 0 {
			lint(file[:at])
		}
	}
}
