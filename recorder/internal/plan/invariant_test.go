package plan

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/isa/amd64"
)

var largeImages = flag.Bool("large", false, "hold plans of gdb and node against objdump, too: minutes")

// listing is what objdump says of an image's code, apart from our own decoder.
type listing struct {
	insts   map[uint64]listed
	targets []uint64            // of direct jumps and calls, sorted
	sources map[uint64][]uint64 // of these, by their targets
}

type listed struct {
	size    uint8
	kind    listedKind
	target  uint64
	padding bool
	ends    bool // a return or a jump that is always taken
}

type listedKind uint8

const (
	listedOther listedKind = iota
	listedReturn
	listedJump // direct, conditional or not
	listedCall
	listedIndirect // jump
)

// list runs objdump over the executable sections.
func list(t testing.TB, path string) *listing {
	t.Helper()
	realtest.Need(t, realtest.AMD64)
	objdump := realtest.Tool(t, realtest.Objdump)
	cmd := exec.Command(objdump, "-d", "-w", "--insn-width=16", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	l := &listing{insts: map[uint64]listed{}, sources: map[uint64][]uint64{}}
	lines := bufio.NewScanner(out)
	lines.Buffer(make([]byte, 1<<16), 1<<20)
	for lines.Scan() {
		l.add(lines.Text())
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(l.targets)
	return l
}

// add reads one line.
func (l *listing) add(line string) {
	at, rest, ok := strings.Cut(line, ":\t")
	if !ok {
		return
	}
	addr, err := strconv.ParseUint(strings.TrimSpace(at), 16, 64)
	if err != nil {
		return
	}
	raw, text, _ := strings.Cut(rest, "\t")
	in := listed{size: uint8((len(strings.TrimRight(raw, " ")) + 1) / 3)}
	words := strings.Fields(text)
	for len(words) > 1 && slices.Contains([]string{"rep", "repz", "bnd", "notrack", "data16", "cs", "ds", "rex.W", "addr32", "repnz"}, words[0]) {
		words = words[1:]
	}
	if len(words) == 0 {
		return
	}
	name, _, _ := strings.Cut(words[0], ",")
	indirect := len(words) > 1 && strings.HasPrefix(words[1], "*")
	switch {
	case strings.HasPrefix(name, "ret"):
		in.kind = listedReturn
	case strings.HasPrefix(name, "call"):
		in.kind = listedCall
	case strings.HasPrefix(name, "jmp") && indirect:
		in.kind = listedIndirect
	case strings.HasPrefix(name, "j") || strings.HasPrefix(name, "loop"):
		in.kind = listedJump
	case strings.HasPrefix(name, "nop") || name == "int3" || name == "xchg" && words[1] == "%ax,%ax":
		in.padding = true
	case name == "lea" || name == "mov":
		in.padding = strings.Contains(text, "0x0(") || len(words) > 1 && selfMove(words[1])
	}
	if (in.kind == listedJump || in.kind == listedCall) && !indirect && len(words) > 1 {
		if in.target, err = strconv.ParseUint(strings.TrimPrefix(words[1], "0x"), 16, 64); err == nil {
			l.targets = append(l.targets, in.target)
			l.sources[in.target] = append(l.sources[in.target], addr)
		}
	}
	in.ends = in.kind == listedReturn || name == "jmp"
	l.insts[addr] = in
}

// selfMove says whether the operands are the same register twice.
func selfMove(operands string) bool {
	a, b, ok := strings.Cut(operands, ",")
	return ok && a == b
}

// targetIn returns a branch target from from up to, and without, to.
func (l *listing) targetIn(from, to uint64) (uint64, bool) {
	i, _ := slices.BinarySearch(l.targets, from)
	if i < len(l.targets) && l.targets[i] < to {
		return l.targets[i], true
	}
	return 0, false
}

// TestPlansHoldAgainstObjdump checks every site of real images: that it does whole instructions, that nothing jumps into
// it, that it takes nothing that is another's, and that no way out of a function is without one.
func TestPlansHoldAgainstObjdump(t *testing.T) {
	names := []string{"libc", "libstdc++", "libcrypto", "redis", "python"}
	if *largeImages {
		names = append(names, "gdb", "node")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			im := realImage(t, name)
			fns, err := im.plan(t.Context()) // which keeps what it knows of parts
			if err != nil {
				t.Fatal(err)
			}
			path, err := filepath.EvalSymlinks(im.Object.Name())
			if err != nil {
				t.Fatal(err)
			}
			c := &checker{t: t, im: im, list: list(t, path)}
			for i := range fns {
				c.function(&fns[i])
			}
			c.overlaps()
			t.Logf("%d instructions, %d sites and islands, %d exits, %d pairs of sites, of these %d apart", len(c.list.insts), len(c.taken), c.exits,
				c.bound, c.apart)
			if name != "libcrypto" && len(c.adrift) != 0 || len(c.adrift) > 3 {
				t.Errorf("objdump was adrift in %d functions", len(c.adrift))
			}
			if c.exits < 1000 {
				t.Errorf("only %d exits", c.exits)
			}
		})
	}
}

// checker holds a plan against a listing.
type checker struct {
	t      *testing.T
	im     *Image
	list   *listing
	taken  []span64
	exits  int
	failed int
	bound  int // pairs of sites of which one relies on the other
	apart  int // of these, those for whom a page's end matters
	adrift map[uint64]bool
}

// lost says whether objdump has gone astray before the function: it decodes data between functions as instructions, and
// the last of them reaches into the function. libcrypto has such data.
func (c *checker) lost(f *Function) bool {
	if _, ok := c.list.insts[f.Addr]; ok && !c.adrift[f.Addr] {
		return false
	}
	if c.adrift == nil {
		c.adrift = map[uint64]bool{}
	}
	c.adrift[f.Addr] = true
	return true
}

func (c *checker) errorf(f *Function, format string, args ...any) {
	c.t.Helper()
	if c.failed++; c.failed <= 20 {
		c.t.Errorf("%s at %#x: %s", f.Name, f.Addr, fmt.Sprintf(format, args...))
	}
}

func (c *checker) function(f *Function) {
	covered, sites := map[uint64]*Moved{}, map[uint64]*Site{}
	entries := 0
	for i := range f.Sites {
		s := &f.Sites[i]
		c.site(f, s)
		for _, m := range c.im.Moved(s, nil) {
			if covered[m.Addr] != nil {
				c.errorf(f, "%#x is taken twice", m.Addr)
			}
			covered[m.Addr], sites[m.Addr] = &m, s
		}
		if s.Role == RoleEntry {
			entries++
		}
	}
	for i := range f.Sites {
		c.led(f, &f.Sites[i], covered, sites)
	}
	if f.Tier == TierNone {
		if f.Reason == ReasonNone || len(f.Sites) != 0 {
			c.errorf(f, "refused with %d sites, reason %q", len(f.Sites), f.Reason)
		}
		return
	}
	if entries != 1 {
		c.errorf(f, "%d entry sites", entries)
	}
	owner := c.im.chunks[c.im.chunkAt(f.Addr)].owner
	for i := range c.im.chunks {
		if part := &c.im.chunks[i]; part.owner == owner {
			c.part(f, part, owner, covered)
			owner = part.owner
		}
	}
}

// site checks one site by itself.
func (c *checker) site(f *Function, s *Site) {
	at := s.Addr
	for _, m := range c.im.Moved(s, nil) {
		in, ok := c.list.insts[m.Addr]
		if !ok && c.lost(f) {
			return
		}
		if !ok || in.size != m.Inst.Len || m.Addr != at {
			c.errorf(f, "site %#x: %#x is no instruction of %d bytes for objdump", s.Addr, m.Addr, m.Inst.Len)
			return
		}
		if s.Kind != SiteBranch && in.kind == listedCall {
			c.errorf(f, "site %#x moves the call at %#x", s.Addr, m.Addr)
		}
		at += uint64(in.size)
	}
	for at < s.End() { // padding taken with it
		in, ok := c.list.insts[at]
		if !ok || !in.padding {
			c.errorf(f, "site %#x takes %#x, which is no padding", s.Addr, at)
			return
		}
		at += uint64(in.size)
	}
	c.taken = append(c.taken, span64{s.Addr, s.End()})
	if s.Kind == SiteCopy {
		return
	}
	addr, n := s.Patch()
	if addr < s.Addr || addr+uint64(n) > s.End() {
		c.errorf(f, "site %#x to %#x: %d bytes change at %#x", s.Addr, s.End(), n, addr)
	}
	if addr/amd64.PageSize != (addr+uint64(n)-1)/amd64.PageSize {
		c.errorf(f, "the patch at %#x crosses a page", addr)
	}
	if s.Hosted {
		c.hosted(f, s)
	} else if s.Island != 0 {
		c.island(f, s)
	}
}

// led checks that every branch into a site is in a site itself, which knows where to and is written before.
func (c *checker) led(f *Function, s *Site, covered map[uint64]*Moved, sites map[uint64]*Site) {
	from := s.Addr + 1
	if s.Kind == SiteCopy {
		from--
		before := s.Addr - 1
		for _, ok := c.list.insts[before]; !ok && s.Addr-before < 15; _, ok = c.list.insts[before] {
			before--
		}
		if in := c.list.insts[before]; !in.ends || before+uint64(in.size) != s.Addr {
			c.errorf(f, "the copied run at %#x can be fallen into", s.Addr)
		}
	}
	for to, ok := c.list.targetIn(from, s.End()); ok; to, ok = c.list.targetIn(to+1, s.End()) {
		if m := covered[to]; m == nil || !m.Target {
			c.errorf(f, "site %#x to %#x: a branch leads to %#x, which has no copy of its own", s.Addr, s.End(), to)
		}
		for _, source := range c.list.sources[to] {
			if m := covered[source]; m == nil || m.Exit || m.Loop {
				c.errorf(f, "site %#x to %#x: the branch at %#x leads to %#x", s.Addr, s.End(), source, to)
			} else if from := sites[source]; from != s && s.Kind == SiteDisplaced {
				if from.Level >= s.Level {
					c.errorf(f, "site %#x is of level %d, and led to from %#x of level %d", s.Addr, s.Level, from.Addr, from.Level)
				}
				c.together(f, s, from)
			}
		}
	}
}

// together checks that two sites, one of which relies on the other, are both on one page with all that they lead to, or both known for
// that they aren't.
func (c *checker) together(f *Function, s, other *Site) {
	at, _ := s.Patch()
	pages := map[uint64]bool{at / amd64.PageSize: true}
	at, _ = other.Patch()
	pages[at/amd64.PageSize] = true
	for _, o := range []*Site{s, other} {
		if o.Island != 0 {
			pages[o.Island/amd64.PageSize] = true
		}
	}
	if s.apart != other.apart || !s.apart && (len(pages) > 1 || other.Kind == SiteCopy) {
		c.errorf(f, "sites %#x and %#x, which relies on the other, are on %d pages; apart: %v, %v", other.Addr, s.Addr, len(pages), other.apart, s.apart)
	}
	c.bound++
	if s.apart {
		c.apart++
	}
}

// hosted checks that an island lies behind the jump of another site of the function, where nothing else is.
func (c *checker) hosted(f *Function, s *Site) {
	hosts := 0
	for i := range f.Sites {
		h := &f.Sites[i]
		if h.Kind == SiteDisplaced && h.Island == 0 && h.Addr+NearJump == s.Island && h.Size >= 2*NearJump {
			hosts++
			if max(1, h.Level)+2 > s.Level {
				c.errorf(f, "site %#x is of level %d, its host %#x of level %d", s.Addr, s.Level, h.Addr, h.Level)
			}
			c.together(f, s, h)
		}
		if h != s && h.Island == s.Island {
			c.errorf(f, "two islands at %#x", s.Island)
		}
	}
	if hosts != 1 {
		c.errorf(f, "%d sites for the island at %#x", hosts, s.Island)
	}
	if d := int64(s.Island) - int64(s.Addr+ShortJump); d < -128 || d > 127 {
		c.errorf(f, "the island at %#x is out of the reach of %#x", s.Island, s.Addr)
	}
	if s.Island/amd64.PageSize != (s.Island+NearJump-1)/amd64.PageSize {
		c.errorf(f, "the island at %#x crosses a page", s.Island)
	}
}

// island checks that an island lies in padding, in reach.
func (c *checker) island(f *Function, s *Site) {
	c.taken = append(c.taken, span64{s.Island, s.Island + NearJump})
	if d := int64(s.Island) - int64(s.Addr+ShortJump); d < -128 || d > 127 {
		c.errorf(f, "the island at %#x is out of the reach of %#x", s.Island, s.Addr)
	}
	if s.Island/amd64.PageSize != (s.Island+NearJump-1)/amd64.PageSize {
		c.errorf(f, "the island at %#x crosses a page", s.Island)
	}
	for b := s.Island; b < s.Island+NearJump; b++ {
		at := b
		for _, ok := c.list.insts[at]; !ok && b-at < 15; _, ok = c.list.insts[at] {
			at--
		}
		in := c.list.insts[at]
		if !in.padding || at+uint64(in.size) <= b {
			c.errorf(f, "the island at %#x takes %#x, which is no padding", s.Island, b)
		}
	}
	if to, ok := c.list.targetIn(s.Island, s.Island+NearJump); ok {
		c.errorf(f, "a branch leads to %#x in the island at %#x", to, s.Island)
	}
}

// part checks that a site covers each exit of a part, as objdump sees exits.
func (c *checker) part(f *Function, part *chunk, owner int32, covered map[uint64]*Moved) {
	inside := func(addr uint64) bool {
		k := c.im.chunkAt(addr)
		return k >= 0 && c.im.chunks[k].owner == owner
	}
	for at := part.start; at < part.end; {
		in, ok := c.list.insts[at]
		if !ok && c.lost(f) {
			return
		}
		if !ok {
			c.errorf(f, "objdump has no instruction at %#x", at)
			return
		}
		leaves := in.kind == listedReturn || in.kind == listedJump && in.target != 0 && !inside(in.target)
		if m := covered[at]; leaves && (m == nil || !m.Exit) {
			c.errorf(f, "no site sees the exit at %#x", at)
		} else if m != nil && m.Exit && !leaves && in.kind != listedIndirect {
			c.errorf(f, "%#x is taken for an exit", at)
		}
		if leaves {
			c.exits++
		}
		at += uint64(in.size)
	}
}

// overlaps checks that no two sites of the image share a byte.
func (c *checker) overlaps() {
	slices.SortFunc(c.taken, func(a, b span64) int { return cmp.Compare(a.start, b.start) })
	for i := 1; i < len(c.taken); i++ {
		if a, b := c.taken[i-1], c.taken[i]; b.start < a.end {
			c.t.Errorf("%#x to %#x and %#x to %#x overlap", a.start, a.end, b.start, b.end)
		}
	}
}

func TestAPlanIsAlwaysTheSame(t *testing.T) {
	for _, name := range []string{"libc", "redis"} {
		t.Run(name, func(t *testing.T) {
			first := planImage(t, realImage(t, name))
			for range 3 {
				if again := planImage(t, realImage(t, name)); !reflect.DeepEqual(first, again) {
					t.Fatal("two plans of one image differ")
				}
			}
		})
	}
}
