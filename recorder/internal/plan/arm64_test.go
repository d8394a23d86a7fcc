package plan

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/testimage"
)

// words is code of arm64.
func words(list ...uint32) (code []byte) {
	for _, w := range list {
		code = binary.LittleEndian.AppendUint32(code, w)
	}
	return code
}

// armed makes an image of testimage.Tiny one of arm64.
func armed(file []byte) []byte {
	binary.LittleEndian.PutUint16(file[18:], 183)
	return file
}

// Some instructions of arm64.
const (
	wordNop     = 0xD503201F
	wordBTI     = 0xD503245F // bti c
	wordPACIASP = 0xD503233F
	wordAUTIASP = 0xD50323BF
	wordRETAA   = 0xD65F0BFF
	wordRet     = 0xD65F03C0
	wordMov     = 0xAA0103E0 // mov x0, x1
	wordPush    = 0xA9BF7BFD // stp x29, x30, [sp, #-16]!
	wordPop     = 0xA8C17BFD // ldp x29, x30, [sp], #16
	wordBLR     = 0xD63F0100 // blr x8
	wordBR      = 0xD61F0200 // br x16
	wordSvc     = 0xD4000001
	wordBrk     = 0xD4200020
	wordB       = 0x14000000 // b .
	wordBL      = 0x94000000
	wordCBZ     = 0xB4000000 // cbz x0, .
	wordAdrX0   = 0x10000000
	wordLit     = 0x58000000 // ldr x0, .
	wordCopy    = 0x19010440 // cpyfp [x0]!, [x1]!, x2!
	wordPacPC   = 0xDAC1A3FE // paciasppc
	wordLater   = 0x74000000 // of Armv9.6
	wordData    = 0x00012345
)

// ahead is how far a branch with 26, or 19, bits leads, in instructions.
func ahead(n int32) uint32   { return uint32(n) & (1<<26 - 1) }
func ahead19(n int32) uint32 { return uint32(n) << 5 & 0xFFFFE0 }

func TestSitesOfFunctionsOfARM64(t *testing.T) {
	const base = 0x1000
	for _, c := range []struct {
		name string
		code []uint32
		want string // of each site: e, x, l for entry, exit, loop; w or b for its kind; the index of its instruction
		why  Reason
	}{
		{"return", []uint32{wordRet}, "exw0", ReasonNone},
		{"plain", []uint32{wordMov, wordRet}, "ew0 xw1", ReasonNone},
		{"two returns", []uint32{wordCBZ + ahead19(2), wordRet, wordMov, wordRet}, "ew0 xw1 xw3", ReasonNone},
		{"landing pad", []uint32{wordBTI, wordMov, wordRet}, "ew1 xw2", ReasonNone},
		{"landing pad and return", []uint32{wordBTI, wordRet}, "exw1", ReasonNone},
		{"signed", []uint32{wordPACIASP, wordPush, wordPop, wordRETAA}, "ew1 xw3", ReasonNone},
		{"signed behind a landing pad", []uint32{wordBTI, wordPACIASP, wordPush, wordPop, wordAUTIASP, wordRet}, "ew2 xw5", ReasonNone},
		{"address first", []uint32{wordAdrX0, wordRet}, "ew0 xw1", ReasonNone},
		{"literal first", []uint32{wordLit + ahead19(2), wordRet, wordRet, wordData}, "ew0 xw1", ReasonNone},
		{"tail call", []uint32{wordMov, wordB + ahead(100)}, "ew0 xb1", ReasonNone},
		{"tail call alone", []uint32{wordB + ahead(100)}, "exb0", ReasonNone},
		{"conditional tail call", []uint32{wordCBZ + ahead19(100), wordMov, wordRet}, "exw0 xw2", ReasonNone},
		{"tail call by a pointer", []uint32{wordMov, wordBR}, "ew0 xw1", ReasonNone},
		{"call first", []uint32{wordBL + ahead(100), wordRet}, "eb0 xw1", ReasonNone},
		{"call first, in a loop", []uint32{wordBL + ahead(100), wordCBZ + ahead19(-1), wordRet}, "", ReasonLoop},
		{"call by a pointer first", []uint32{wordBLR, wordRet}, "", ReasonCall},
		{"loop to the entry", []uint32{wordMov, wordCBZ + ahead19(-1), wordRet}, "ew0 lw1 xw2", ReasonNone},
		{"loop to the landing pad", []uint32{wordBTI, wordMov, wordCBZ + ahead19(-2), wordRet}, "ew1 lw2 xw3", ReasonNone},
		{"loop to itself", []uint32{wordB}, "elb0", ReasonNone},
		{"return to a landing pad", []uint32{wordMov, 0x8B2463FF, wordRet}, "ew0", ReasonNone},         // add sp, sp, x4
		{"return behind a large frame", []uint32{wordMov, 0x8B2C63FF, wordRet}, "ew0 xw2", ReasonNone}, // add sp, sp, x12
		{"return behind an alloca", []uint32{wordMov, 0x910003BF, wordRet}, "ew0 xw2", ReasonNone},     // mov sp, x29
		{"trap", []uint32{wordMov, wordBrk}, "ew0", ReasonNone},
		{"trap alone", []uint32{wordBrk}, "ew0", ReasonNone},
		{"call that doesn't return", []uint32{wordMov, wordBL + ahead(100)}, "ew0", ReasonNone},
		{"system call first", []uint32{wordSvc, wordRet}, "", ReasonInstruction},
		{"a copy's step first", []uint32{wordCopy, wordMov, wordRet}, "ew1 xw2", ReasonNone},
		{"signature by PC", []uint32{wordPacPC, wordPush, wordPop, wordRet}, "ew1 xw3", ReasonNone},
		{"data behind the code", []uint32{wordMov, wordRet, wordData, wordRet}, "ew0 xw1", ReasonNone},
		{"data in the code's way", []uint32{wordMov, wordData}, "", ReasonUndecodable},
		{"what a later architecture adds", []uint32{wordMov, wordLater, wordRet}, "", ReasonUndecodable},
		{"code that nothing leads to", []uint32{wordMov, wordRet, wordMov, wordRet}, "ew0 xw1", ReasonNone},
		{"code whose address is taken", []uint32{wordAdrX0 + ahead19(2), wordRet, wordMov, wordRet}, "", ReasonJump},
		{"jump by what was computed", []uint32{0x8B010010, wordBR}, "", ReasonJump}, // add x16, x0, x1
		{"saves behind a call", []uint32{wordPush, wordBL + ahead(100), 0xA90153F3}, "ew0", ReasonNone},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := armed(testimage.Tiny(words(append(c.code, wordRet, wordRet)...), []testimage.Symbol{{Name: "f", Addr: base, Size: uint64(len(c.code)) * 4}}))
			fns, _, err := planBytes(file)
			if err != nil {
				t.Fatal(err)
			}
			f := &fns[0]
			got := described(f, base)
			if f.Reason != c.why || got != c.want {
				t.Errorf("%q, %v at %#x; want %q, %v", got, f.Reason, f.At, c.want, c.why)
			}
			for i := range f.Sites {
				if at, n := f.Sites[i].Patch(); at != f.Sites[i].Addr || n != 4 {
					t.Errorf("the site at %#x changes %d bytes at %#x", f.Sites[i].Addr, n, at)
				}
			}
		})
	}
}

// described tells a function's sites as the table above has them.
func described(f *Function, base uint64) string {
	var parts []string
	for i := range f.Sites {
		s := &f.Sites[i]
		text := ""
		if s.Role == RoleEntry {
			text = "e"
		}
		if s.Exits() == 1 {
			text += "x"
		}
		if s.loops&1 != 0 {
			text += "l"
		}
		text += map[SiteKind]string{SiteWord: "w", SiteBranch: "b"}[s.Kind]
		parts = append(parts, text+string(rune('0'+(s.Addr-base)/4)))
	}
	return strings.Join(parts, " ")
}

func TestRegistersThatVeneersMayChangeAreFreeUnlessTheFunctionUsesThem(t *testing.T) {
	const base = 0x1000
	const (
		movX16    = 0xAA0003F0 // mov x16, x0
		addX16    = 0x8B100200 // add x0, x16, x16
		addX17    = 0x8B110000 // add x0, x0, x17
		callPlain = wordBL + 100
	)
	for _, c := range []struct {
		name     string
		code     []uint32
		site     int
		x16, x17 bool
	}{
		{"not used", []uint32{wordMov, wordRet}, 0, true, true},
		{"given in x17", []uint32{addX17, wordRet}, 0, true, false},
		{"at the return", []uint32{addX17, wordRet}, 1, true, true},
		{"kept over a conditional exit", []uint32{movX16, wordCBZ + ahead19(100), addX16, wordRet}, 1, false, true},
		{"before it is written", []uint32{movX16, wordCBZ + ahead19(100), addX16, wordRet}, 0, true, true},
		{"jump by it", []uint32{wordMov, wordBR}, 1, false, true},
		{"behind a call", []uint32{wordCBZ + ahead19(100), callPlain, addX16, wordRet}, 0, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := armed(testimage.Tiny(words(c.code...), []testimage.Symbol{{Name: "f", Addr: base, Size: uint64(len(c.code)) * 4}}))
			fns, im, err := planBytes(file)
			if err != nil || fns[0].Tier == TierNone {
				t.Fatal(err, fns[0].Reason)
			}
			s := &fns[0].Sites[c.site]
			if x16, x17 := s.Free(); x16 != c.x16 || x17 != c.x17 {
				t.Errorf("at %#x x16 is free: %v, x17: %v; want %v, %v", s.Addr, x16, x17, c.x16, c.x17)
			}
			if m, ok := im.MovedWord(s); !ok || m.Inst.Word != c.code[(s.Addr-base)/4] || m.Exit != (s.Exits() == 1) {
				t.Errorf("what is moved is %+v, %v", m, ok)
			}
		})
	}
}

// FuzzPlanARM64 plans images of made-up code of arm64.
func FuzzPlanARM64(f *testing.F) {
	f.Add(words(wordPush, wordBL+4, wordCBZ+ahead19(2), wordPop, wordRet, wordAdrX0, wordBR), uint64(1))
	f.Add(words(wordBTI, 0x90000001, 0x38614821, 0x10000062, 0x8B218841, 0xD61F0020, wordRet), uint64(5))
	f.Fuzz(func(t *testing.T, code []byte, seed uint64) {
		data := armed(testimage.Damaged(nil, code, seed, true))
		start := time.Now()
		fns, im, err := planBytes(data)
		if d := time.Since(start); d > time.Minute {
			t.Fatalf("planning %d bytes took %v", len(data), d)
		}
		if err != nil {
			return
		}
		checkPlan(t, fns, im)
		for i := range fns {
			for k := range fns[i].Sites {
				if s := &fns[i].Sites[k]; s.Addr&3 != 0 || s.Size != 4 || s.Count != 1 || s.Level != 1 {
					t.Fatalf("site %+v", *s)
				}
			}
		}
	})
}

func TestHostileImagesOfARM64TakeBoundedTime(t *testing.T) {
	many := func(n int, list ...uint32) (code []byte) {
		one := words(list...)
		for range n {
			code = append(code, one...)
		}
		return code
	}
	whole := func(code []byte) []byte {
		return armed(testimage.Tiny(code, []testimage.Symbol{{Name: "f", Addr: 0x1000, Size: uint64(len(code))}}))
	}
	parts := func(code []byte, size int) []byte {
		var list []testimage.Symbol
		for at := 0; at+size <= len(code); at += size {
			name := "f"
			if at > 0 {
				name = "f.cold"
			}
			list = append(list, testimage.Symbol{Name: name, Addr: 0x1000 + uint64(at), Size: uint64(size)})
		}
		return armed(testimage.Tiny(code, list))
	}
	images := map[string][]byte{
		"indirect jumps":        whole(many(1<<17, wordCBZ+ahead19(2), 0xD61F0020)),
		"tables":                whole(many(1<<15, wordCBZ+ahead19(6), 0x10000001, 0x38614821, 0x10000062, 0x8B218841, 0xD61F0020)),
		"arrays":                whole(many(1<<16, wordCBZ+ahead19(3), 0xF8607820, 0xD61F0000)),
		"slots":                 whole(many(1<<16, wordCBZ+ahead19(4), 0xF94003E1, 0x8B010000, 0xD61F0000)),
		"pages":                 whole(many(1<<18, 0x90000001, 0x90000002)),
		"landing pads":          whole(append(many(1<<18-1, wordBTI), words(wordRet)...)),
		"parts that jump":       parts(many(1<<16, wordB+ahead(1<<15), wordCBZ+ahead19(1<<10)), 8),
		"more than is planned":  whole(many(1<<20, wordMov, wordMov)),
		"loops":                 whole(many(1<<17, wordCBZ+ahead19(-1<<10), 0xAA1003F1)),
		"functions of one word": parts(many(1<<17, wordRet), 4),
	}
	for name, data := range testimage.Hostile() {
		images["x86's "+name] = armed(data)
	}
	for name, data := range images {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			fns, im, err := planBytes(data)
			if d := time.Since(start); d > time.Minute {
				t.Errorf("%v for %d bytes", d, len(data))
			}
			if err == nil {
				checkPlan(t, fns, im)
			}
			t.Logf("%v, %d functions, %v", time.Since(start).Round(time.Millisecond), len(fns), shares(fns))
		})
	}
}

func TestMarksOfARM64(t *testing.T) {
	const base = 0x1000
	code := []uint32{wordMov, wordNop, wordSvc, wordBL + 100, wordNop, wordRet}
	o, err := object.Parse("tiny", armed(testimage.Tiny(words(append(code, wordRet)...), []testimage.Symbol{{Name: "f", Addr: base, Size: uint64(len(code)) * 4}})))
	if err != nil {
		t.Fatal(err)
	}
	im, err := NewImage(o, "tiny")
	if err != nil {
		t.Fatal(err)
	}
	im.Marks = []uint64{base, base + 4, base + 8, base + 16, base + 16, base + 20, base + 24}
	if _, err := im.Plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		why  Reason
		with MarkWith
	}{
		{ReasonNone, MarkJoined}, {ReasonNone, MarkApart}, {ReasonInstruction, MarkApart}, {ReasonNone, MarkApart}, {ReasonMarkedTwice, MarkApart},
		{ReasonNone, MarkJoined}, {ReasonOutside, MarkApart},
	} {
		m := &im.Marked[i]
		if m.Alone.Reason != want.why || m.With != want.with || (m.Alone.Tier != TierNone) != (want.why == ReasonNone) {
			t.Errorf("%#x: %v, %v; want %v, %v", m.Addr, m.Alone.Reason, m.With, want.why, want.with)
		}
		if want.why == ReasonNone && (!m.Single() || m.Alone.Sites[0].Role != RoleMark || m.Alone.Sites[0].Addr != m.Addr) {
			t.Errorf("%#x: site %+v", m.Addr, m.Alone.Sites[0])
		}
	}
}
