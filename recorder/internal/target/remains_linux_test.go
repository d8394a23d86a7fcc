package target

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/owner"
	"github.com/callreel/callreel/recorder/internal/recovery"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// server is a process that has mapped a memfd which somebody else has made.
type server struct {
	t      *testing.T
	p      *process.Process
	victim uint64
	finish func()
}

// serve starts a server that maps fd.
func serve(t *testing.T, fd int, prot string) *server {
	t.Helper()
	cmd := exec.Command(realtest.Build(t, "mapper"), "3", prot)
	dup, err := unix.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(dup), "memfd")
	defer f.Close()
	cmd.ExtraFiles, cmd.Stderr = []*os.File{f}, os.Stderr
	in, out := realtest.StartPiped(t, cmd)
	s := &server{t: t}
	lines := bufio.NewReader(out)
	var at uint64
	if _, err := fmt.Fscanf(lines, "0x%x 0x%x\n", &at, &s.victim); err != nil {
		t.Fatal(err)
	}
	if s.p, err = process.Open(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	s.finish = func() {
		s.p.Close()
		fmt.Fprintln(in)
		if line, err := lines.ReadString('\n'); err != nil || line != "unchanged\n" {
			t.Errorf("the server says %q, %v", line, err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	return s
}

// forged makes recovery memory like a recorder's, for a process if there is one, with a patch of its text, and returns its descriptor.
func forged(t *testing.T, p *process.Process, key []byte, patch *stub.Patch, inode func(process.Memfd) uint64) process.Memfd {
	t.Helper()
	fd, err := unix.MemfdCreate(recovery.MemfdName, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	file := process.Memfd{FD: fd, Dev: uint64(unix.Major(st.Dev))<<32 | uint64(unix.Minor(st.Dev)), Inode: st.Ino}
	o, err := owner.New(recovery.HdrOwner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	m, err := recovery.New(o, file, 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	a, err := recovery.AboutUs(p, file, false)
	if err != nil {
		t.Fatal(err)
	}
	if inode != nil {
		m.File.Inode = inode(file)
	}
	j := m.Journal()
	if err := j.Add(&recovery.Record{Arenas: []recovery.Arena{{Span: recovery.Span{Base: patch.Addr &^ 0xfff, Size: 3 * PageSize}, Dev: file.Dev, Inode: file.Inode}}}); err != nil {
		t.Fatal(err)
	}
	if err := j.Add(&recovery.Record{Patches: []stub.Patch{*patch}}); err != nil {
		t.Fatal(err)
	}
	m.Sign(a, key)
	if err := m.Close(); err != nil { // its recorder has died
		t.Fatal(err)
	}
	return file
}

// Memory that looks like a recorder's is nothing to believe: a server may have been sent it.
func TestRecoveryMemoryOfAnotherIsLeftAlone(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace, realtest.GCC)
	key, err := recovery.Key()
	if err != nil {
		t.Fatal(err)
	}
	other, finish := startCat(t) // whom a genuine recorder has signed for
	for _, prot := range []string{"r", "rw", "rx"} {
		for name, c := range map[string]struct {
			key   []byte
			inode func(process.Memfd) uint64
		}{
			"unsigned":                {nil, nil},
			"signed with another key": {make([]byte, recovery.KeySize), nil},
			"a copy of a signed one":  {key, func(f process.Memfd) uint64 { return f.Inode + 1 }},
			"signed for another":      {key, nil},
		} {
			t.Run(prot+" "+name, func(t *testing.T) {
				old := []byte{0x90, 0x90, 0x90, 0x90, 0x90}
				patch := stub.NewPatch(0x401000, old, []byte{0xE9, 0, 0, 0, 0})
				if prot == "rw" { // the server maps it before it is sealed, then nobody has sealed it
					testWritable(t, &patch)
					return
				}
				file := forged(t, other, c.key, &patch, c.inode)
				s := serve(t, file.FD, prot)
				s.check()
				s.finish()
			})
		}
	}
	finish()
}

// check finds nothing in the server, and changes nothing.
func (s *server) check() {
	s.t.Helper()
	before := mappedAndOpen(s.t, s.p)
	if l, err := FindRemains(s.p); l != nil || err != nil {
		s.t.Errorf("found %+v, %v", l, err)
	}
	if d, err := FindDead(s.p); !errors.Is(err, ErrNotRecorded) {
		s.t.Errorf("detach: %+v, %v", d, err)
	}
	if now := mappedAndOpen(s.t, s.p); now != before {
		s.t.Errorf("before\n%s\nnow\n%s", before, now)
	}
}

// testWritable is a memfd by our name that a client goes on to write to.
func testWritable(t *testing.T, patch *stub.Patch) {
	fd, err := unix.MemfdCreate(recovery.MemfdName, unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, 16*PageSize); err != nil {
		t.Fatal(err)
	}
	header := make([]byte, PageSize)
	binary.LittleEndian.PutUint64(header[recovery.HdrMagic:], recovery.MemoryMagic)
	binary.LittleEndian.PutUint32(header[recovery.HdrVersion:], recovery.MemoryVersion)
	binary.LittleEndian.PutUint64(header[recovery.HdrSize:], 16*PageSize)
	j := recovery.Journal{Space: make([]byte, PageSize)}
	if err := j.Add(&recovery.Record{Patches: []stub.Patch{*patch}}); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Pwrite(fd, append(header, j.Space...), 0); err != nil {
		t.Fatal(err)
	}
	s := serve(t, fd, "rw")
	s.check()
	s.finish()
}

// Of what was noted only patches count whose old bytes are those of the file that is mapped there.
func TestOnlyBytesOfTheFileAreRestored(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace, realtest.GCC)
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(PageSize); err != nil {
		t.Fatal(err)
	}
	s := serve(t, int(file.Fd()), "r")
	defer s.finish()
	maps, err := s.p.Maps()
	if err != nil {
		t.Fatal(err)
	}
	was := make([]byte, 5)
	if _, err := s.p.ReadAt(was, s.victim); err != nil {
		t.Fatal(err)
	}
	evil := []byte{0xB8, 1, 2, 3, 4}
	for name, c := range map[string]struct {
		addr uint64
		old  []byte
		kept int
	}{
		"the file's":             {s.victim, was, 1},
		"others":                 {s.victim, evil, 0},
		"no text":                {maps[0].Start &^ 0xffff, was, 0},
		"across a mapping's end": {process.FindMapping(maps, s.victim).End - 2, was, 0},
	} {
		l := &Remains{Record: &recovery.Record{Patches: []stub.Patch{stub.NewPatch(c.addr, c.old, []byte{0xE9, 1, 1, 1, 1})}}}
		if err := l.believeFiles(s.p, maps); err != nil {
			t.Fatal(err)
		}
		if n := len(l.Record.Patches); n != c.kept {
			t.Errorf("%s: %d patches are believed", name, n)
		}
	}
}

// A detach that was killed has a process take the recorder's memory away, perhaps just when the next one looks for it.
func TestMemoryThatGoesWhileItIsReadIsLookedForAgain(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.LivePtrace)
	target := realtest.Start(t, realtest.Build(t, "flicker"))
	p, err := process.Open(target.Pid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range 300 {
		if l, err := FindRemains(p); err != nil || l != nil {
			t.Fatalf("found %v, %v", l, err)
		}
	}
	target.Finish()
}
