package hostile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// What hostile_server has made itself.
const (
	jitAt   = 0x10000000
	jitSize = 0x2000
	canary  = 0x1122334455667788
)

// arena is what a record says of one.
type arena struct{ base, size, dev, inode uint64 }

// forged is the recovery memory of a recorder that has died, as a target may make it (package recorder's recovery_memory and recovery):
// a header without a signature, and a record that names arenas and calls some bytes of a process's text a site, under which there were
// others.
func forged(pid int, site uint64, now []byte, arenas ...arena) []byte {
	const records = 0x1000
	le := binary.LittleEndian
	mem := make([]byte, records+0x4000)
	le.PutUint64(mem[0:], 0x79726f6365726c63)
	le.PutUint32(mem[8:], 1)
	le.PutUint32(mem[12:], 4194302|0x40000000) // whoever it was has died
	le.PutUint32(mem[16:], 4194302)
	le.PutUint64(mem[24:], 1)
	le.PutUint64(mem[48:], uint64(pid))
	le.PutUint64(mem[88:], uint64(len(mem)))
	r := mem[records:]
	le.PutUint32(r[12:], 4)
	le.PutUint32(r[16:], uint32(len(arenas)))
	le.PutUint32(r[20:], 1)
	at := 24
	for _, a := range arenas {
		for _, v := range []uint64{a.base, a.size, a.dev, a.inode} {
			le.PutUint64(r[at:], v)
			at += 8
		}
	}
	patch := r[at:]
	le.PutUint64(patch, site)
	copy(patch[8:13], []byte{0xcc, 0xcc, 0xcc, 0xcc, 0xcc})
	copy(patch[13:18], now)
	patch[18], patch[20] = 5, 1
	if runtime.GOARCH == "arm64" { // one instruction
		patch[18] = 4
	}
	le.PutUint32(r[8:], crc32.Checksum(r[12:at+24], crc32.MakeTable(crc32.Castagnoli)))
	le.PutUint64(r, 0x79726576_6f636572)
	return mem
}

// ofJIT is the code that a process has made itself, with the page behind it.
var ofJIT = arena{base: jitAt, size: jitSize + 0x1000}

// symbolOf is the address of a function of a program that is linked to a fixed one.
func symbolOf(t testing.TB, path, name string) uint64 {
	t.Helper()
	return realtest.FunctionAddress(t, path, func(n string) bool { return n == name })
}

// memoryOf reads a process's memory.
func memoryOf(pid int, addr uint64, size int) ([]byte, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buf := make([]byte, size)
	_, err = f.ReadAt(buf, int64(addr))
	return buf, err
}

// A served is a server of root's that has mapped what a client has sent it.
type served struct {
	*realtest.Proc
	user         *realtest.User
	client       *realtest.Proc
	socket, file string // of the client
	site         uint64
	now          []byte
	runs         bool // it maps code for executing
}

// serve starts a server and a client of another user's, which is to send it memory in its own time, or isn't started yet ("later").
func serve(t *testing.T, mapped, sent string) *served {
	t.Helper()
	program, client := realtest.Build(t, "hostile_server", "-static", "-no-pie"), knowing(t, "hostile_client")
	s := &served{user: realtest.NewUser(t, 0), site: symbolOf(t, program, "hostile_leaf"), runs: mapped == "as"}
	s.socket, s.file = filepath.Join(s.user.Folder, "socket"), filepath.Join(s.user.Folder, "forged")
	s.Proc = realtest.Start(t, program, s.socket, mapped)
	var err error
	if s.now, err = memoryOf(s.Pid(), s.site, 5); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.file, forged(s.Pid(), s.site, s.now, ofJIT), 0o644); err != nil {
		t.Fatal(err)
	}
	if sent != "later" {
		s.client = s.user.Start(client, s.socket, s.file, sent)
	}
	return s
}

// taken waits a little for the client to have taken the memory that it is recorded with, and sent it. It may have missed the moments in
// which there are descriptors, on a busy machine; then the rest shows nothing new, but no harm either.
func (s *served) taken(t *testing.T) {
	t.Helper()
	for range 300 {
		for _, line := range s.client.Stdout() {
			if strings.HasPrefix(line, "sent") {
				t.Log(line)
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Log("the client has missed its moment")
}

// returns is the instruction that fill_with_returns of hostile.h has written.
func returns() []byte {
	if runtime.GOARCH == "arm64" {
		return []byte{0xc0, 0x03, 0x5f, 0xd6}
	}
	return []byte{0xc3}
}

// unharmed fails the test if anything of the server has been changed.
func (s *served) unharmed(t *testing.T, by string) {
	t.Helper()
	if !s.Alive() {
		t.Fatalf("%s: the server has ended: %s", by, s.Ended())
	}
	if err := realtest.TextAsFile(s.Pid()); err != nil {
		t.Fatalf("%s: %v", by, err)
	}
	code, err := memoryOf(s.Pid(), jitAt, jitSize)
	if err != nil || !bytes.Equal(code, bytes.Repeat(returns(), len(code)/len(returns()))) {
		t.Fatalf("%s: the code that the server has made is not what it was (%v)", by, err)
	}
	word, err := memoryOf(s.Pid(), jitAt+jitSize, 8)
	if err != nil || binary.LittleEndian.Uint64(word) != canary {
		t.Fatalf("%s: the server's data is % x (%v)", by, word, err)
	}
}

// attacked runs the verbs that look for what a dead recorder has left, on the server.
// A server that runs code of its clients can be recorded only if that isn't called as a recorder's.
func (s *served) attacked(t *testing.T) {
	pid := strconv.Itoa(s.Pid())
	for _, args := range [][]string{
		{"functions", "-p", pid, "-f", "hostile_*"},
		{"stacks", "-p", pid},
		{"doctor", "-p", pid},
		{"detach", "-p", pid},
		{"top", "-p", pid, "-f", "hostile_*", "--once", "--interval", "100ms"},
		{"record", "-p", pid, "-f", "hostile_*", "-d", "100ms", "--json", "-o", filepath.Join(t.TempDir(), "server.reel")},
		{"detach", "-p", pid},
	} {
		r := callreel(t, args...)
		s.unharmed(t, strings.Join(args[:3], " "))
		if args[0] == "detach" && strings.Contains(r.Stdout, "restored") {
			t.Errorf("detach: %s", r.Stdout)
		}
		if (args[0] == "record" || args[0] == "top" || args[0] == "functions") && r.Code != 0 && !(s.runs && r.Code == 3) {
			t.Errorf("%q: exit code %d: %s", args, r.Code, r.Stderr)
		}
		if args[0] == "record" && r.Code == 0 {
			if calls := realtest.Decode[realtest.Summary](t, r.Stdout).Calls; calls == 0 {
				t.Error("no calls of the server's recorded")
			}
		}
	}
}

func TestServerHasMappedAForgedRecord(t *testing.T) {
	for _, mapped := range []string{"ro", "rw"} {
		t.Run(mapped, func(t *testing.T) {
			s := serve(t, mapped, "memfd")
			s.client.WaitLine("sent")
			s.attacked(t)
			s.Finish()
		})
	}
}

// The client is recorded, and sends the server the memory that it is recorded with. The server was never named to any recorder.
func TestServerHasMappedTheMemoryOfAClientsRecorder(t *testing.T) {
	for _, mapped := range []string{"ro", "as"} {
		for _, follow := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,follow=%v", mapped, follow), func(t *testing.T) {
				s := serve(t, mapped, "ring")
				reel := filepath.Join(t.TempDir(), "client.reel")
				args := []string{"record", "-p", strconv.Itoa(s.client.Pid()), "-f", "hostile_*", "-o", reel}
				if follow {
					args = append(args, "--follow")
				}
				w := watch(s.Pid(), "a server")
				r := start(t, args...)
				if r.on(t, reel) {
					s.taken(t)
					r.interrupt()
				}
				r.wait(t)
				close(w.stop)
				if seen := <-w.seen; strings.HasPrefix(seen, "is traced") {
					t.Errorf("the server %s", seen)
				}
				s.unharmed(t, "record of the client")
				intact(t, s.client.Pid())
				s.attacked(t)
				s.Finish()
			})
		}
	}
}

// The recorder is killed, and the process that it recorded says what there is to be undone, there and in the server.
func TestRecordOfADeadRecorderIsForged(t *testing.T) {
	s := serve(t, "ro", "ring")
	reel := filepath.Join(t.TempDir(), "client.reel")
	r := start(t, "record", "-p", strconv.Itoa(s.client.Pid()), "-f", "hostile_*", "-o", reel)
	if !r.on(t, reel) {
		r.wait(t)
		t.Fatal("not recorded")
	}
	s.taken(t)
	r.kill()
	s.attacked(t)
	d := callreel(t, "detach", "-p", strconv.Itoa(s.client.Pid()))
	t.Logf("detach from the client: code %d\n%s%s", d.Code, d.Stdout, d.Stderr)
	s.unharmed(t, "detach from the client")
	s.Finish()
}

// The server was recorded, too, by a recorder that was killed. What that has left is told from what the client has sent, which says of
// the server's own code that it is the recorder's, and which is found first.
func TestServerHasMappedAForgedRecordAndWasRecorded(t *testing.T) {
	s := serve(t, "ro", "later")
	reel := filepath.Join(t.TempDir(), "server.reel")
	r := start(t, "record", "-p", strconv.Itoa(s.Pid()), "-f", "hostile_*", "-o", reel)
	if !r.on(t, reel) {
		r.wait(t)
		t.Fatal("not recorded")
	}
	r.kill()
	arenas := append([]arena{ofJIT}, arenasOf(t, s.Pid())...) // the client has guessed them
	if err := os.WriteFile(s.file, forged(s.Pid(), s.site, s.now, arenas...), 0o644); err != nil {
		t.Fatal(err)
	}
	s.user.Start(knowing(t, "hostile_client"), s.socket, s.file, "memfd").WaitLine("sent")
	d := callreel(t, "detach", "-p", strconv.Itoa(s.Pid()))
	t.Logf("detach: code %d\n%s%s", d.Code, d.Stdout, d.Stderr)
	s.unharmed(t, "detach")
	if d.Code != 0 {
		t.Errorf("detach: exit code %d", d.Code)
	}
	s.Finish()
}

// arenasOf is what a recorder has mapped in a process, as a record names it.
func arenasOf(t *testing.T, pid int) (found []arena) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var start, end, offset, major, minor, inode uint64
		var perm string
		if !strings.Contains(line, "/memfd:callreel-code") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x %s %x %x:%x %d", &start, &end, &perm, &offset, &major, &minor, &inode); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		found = append(found, arena{start, end - start + 0x1000, major<<32 | minor, inode})
	}
	return found
}
