package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// goOfARM64 is a small program whose functions have frames of all sizes, switches and recovered panics.
const goOfARM64 = `package main

import ("fmt"; "os")

//go:noinline
func leaf(x int) int { return x * 3 }

//go:noinline
func large(n int) int {
	var b [5000]int
	for i := range b { b[i] = i * n }
	return b[n] + leaf(b[7])
}

//go:noinline
func huge(n int) int {
	var b [50000]int
	for i := range b { b[i] = i + n }
	return b[n] + leaf(b[9])
}

//go:noinline
func choose(n int) int {
	switch n {
	case 0: return leaf(n) + 1
	case 1: return leaf(n) * 2
	case 2: return leaf(n + 3)
	case 3: return leaf(n) - 4
	case 4: return leaf(n) ^ 5
	case 5: return leaf(n) << 6
	case 6: return leaf(n+1) / 7
	case 7: return leaf(n) | 8
	case 8: return leaf(n) & 9
	case 9: return 77
	}
	return -1
}

//go:noinline
func recovers(p *int) (err any) {
	defer func() { err = recover() }()
	return leaf(*p)
}

//go:noinline
func several(n int) (s int, err error) {
	defer func() { if r := recover(); r != nil { err = fmt.Errorf("%v", r) } }()
	for i := 0; i < n; i++ {
		if i == 3 { defer func() { s += leaf(i) }() }
		s += i
	}
	return s, nil
}

func main() {
	n := len(os.Args)
	s, err := several(n)
	fmt.Println(leaf(n), large(n), huge(n), choose(n), recovers(nil), s, err)
}
`

// The functions of a Go program have their entries behind the check of the stack, and each of their returns is a site.
func TestFunctionsOfGoProgramsOfARM64(t *testing.T) {
	for _, flags := range [][]string{nil, {"-buildmode=pie"}, {"-gcflags=-N -l"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			path := realtest.BuildGoSource(t, goOfARM64, []string{"GOARCH=arm64"}, flags...)
			o, err := object.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			im, err := NewImage(o, "program")
			if err != nil {
				t.Fatal(err)
			}
			if im.Go == nil || im.Go.Unsupported != nil {
				t.Fatalf("%+v", im.Go)
			}
			fns, err := im.Plan(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			assembly := map[uint64]bool{}
			for i := range im.Go.Functions {
				f := &im.Go.Functions[i]
				assembly[f.Start] = f.Assembly
			}
			why, traced, compiled := map[string]int{}, 0, 0
			for i := range fns {
				f := &fns[i]
				if !assembly[f.Addr] {
					compiled++
				}
				if f.Tier == TierNone {
					why[f.Reason.String()]++
					if strings.HasPrefix(f.Name, "main.") || f.Reason != ReasonAssembly && strings.HasPrefix(f.Name, "fmt.") {
						t.Errorf("%s is refused: %v at %#x", f.Name, f.Reason, f.At)
					}
					continue
				}
				traced++
				returns := 0
				for pc := f.Addr; pc+4 <= f.Addr+f.Size; pc += 4 {
					if w := im.textAt(pc).word(pc); w == wordRet {
						returns++
						if !slices.ContainsFunc(f.Sites, func(s Site) bool { return s.Addr == pc && s.Exits() == 1 }) {
							t.Errorf("%s: the return at %#x is no site", f.Name, pc)
						}
					}
				}
				entry := &f.Sites[0]
				if entry.Role != RoleEntry || entry.SPDelta != 0 {
					t.Errorf("%s: %+v", f.Name, entry)
				}
				if registers, vectors := im.ChangedBefore(f); registers&0xFFFF != 0 || vectors {
					t.Errorf("%s: %#x are changed before its entry", f.Name, registers)
				}
				if checked := im.textAt(f.Addr).word(f.Addr) == 0xF9400B90; checked && entry.Addr < f.Addr+12 {
					t.Errorf("%s: its entry at %#x is in the check of the stack", f.Name, entry.Addr)
				}
			}
			t.Logf("%d of %d functions traced, of which the compiler has made %d: %v", traced, len(fns), compiled, why)
			if traced*100 < compiled*98 {
				t.Errorf("%d of %d compiled functions are traced", traced, compiled)
			}
			if im.Go.DeferReturn == 0 {
				t.Error("nothing recovers")
			}
		})
	}
}

const cryptoOfARM64 = `package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"math/big"
)

func main() {
	sum := sha256.Sum256([]byte("x"))
	k, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok, _ := ecdsa.SignASN1(rand.Reader, k, sum[:])
	fmt.Println(ok, crc32.Checksum(sum[:], crc32.MakeTable(crc32.Castagnoli)), new(big.Int).Exp(big.NewInt(3), big.NewInt(1000), nil))
}
`

// Assembly of arm64 is traced where Go code calls it as it calls others, and left alone where something may be in the registers that an event
// changes, and where it changes stacks or begins and ends threads.
func TestAssemblyOfGoProgramsOfARM64(t *testing.T) {
	im := openTestImage(t, realtest.BuildGoSource(t, cryptoOfARM64, []string{"GOARCH=arm64"}))
	fns, err := im.Plan(t.Context())
	realtest.Must(t, err)
	tier := map[string]Tier{}
	for i := range fns {
		tier[fns[i].Name] = max(tier[fns[i].Name], fns[i].Tier)
	}
	for _, name := range []string{"runtime.rt0_go", "runtime.mstart", "runtime.gogo", "gogo", "runtime.mcall", "runtime.systemstack",
		"runtime.systemstack_switch", "runtime.morestack", "runtime.morestack_noctxt", "runtime.goexit", "runtime.sigtramp", "runtime.clone",
		"runtime.asyncPreempt", "runtime.exitThread", "runtime.gcWriteBarrier1", "gcWriteBarrier", "runtime.spillArgs", "runtime.load_g",
		"runtime.unspillArgs", "syscall.rawVforkSyscall", "callRet", "p256SubInternal", "p256MulInternal"} {
		if got, there := tier[name]; got != TierNone {
			t.Errorf("%s is traced", name)
		} else if !there {
			t.Errorf("there is no %s", name)
		}
	}
	for _, name := range []string{"runtime.memmove", "runtime.futex", "cmpbody", "aeshashbody", "runtime.call64", "internal/bytealg.IndexByte",
		"crypto/internal/fips140/sha256.blockSHA2", "crypto/internal/fips140/nistec.p256Mul", "hash/crc32.castagnoliUpdate", "math/big.addVV"} {
		if tier[name] == TierNone {
			t.Errorf("%s isn't traced", name)
		}
	}
}
