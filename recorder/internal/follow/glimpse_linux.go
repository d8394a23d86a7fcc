package follow

import (
	"bytes"
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/recovery"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// A glimpse reads, with one system call, whether a process has the rings and probes. So it sees processes, too, that have ended before
// more can be found out, let alone done. What it sees is believed of the family only: that it has no probes any more.
type glimpse struct {
	rings uint64       // where they are
	sites []stub.Patch // some of those that have been written
}

// mostSites bounds how many sites are looked at.
const mostSites = 64

func newGlimpse(rings uint64, r *recovery.Record) *glimpse {
	g := &glimpse{rings: rings}
	step := max(1, len(r.Patches)/mostSites)
	for i := 0; i < len(r.Patches) && len(g.sites) < mostSites; i += step {
		g.sites = append(g.sites, r.Patches[i])
	}
	return g
}

// of looks at a process. known is false for one that hasn't the rings, or has ended.
func (g *glimpse) of(pid int) (probed, known bool) {
	var magic [8]byte
	read := make([][stub.MaxPatch]byte, len(g.sites))
	to, from := make([]unix.Iovec, 0, 1+len(read)), make([]unix.RemoteIovec, 0, 1+len(read))
	add := func(buf []byte, at uint64) {
		v := unix.Iovec{Base: &buf[0]}
		v.SetLen(len(buf))
		to, from = append(to, v), append(from, unix.RemoteIovec{Base: uintptr(at), Len: len(buf)})
	}
	add(magic[:], g.rings)
	for i := range g.sites {
		add(read[i][:len(g.sites[i].Old())], g.sites[i].Addr)
	}
	// It ends at the first that can't be read, as those of a library can't that was unloaded.
	n, err := unix.ProcessVMReadv(pid, to, from, 0)
	if err != nil || n < len(magic) || binary.LittleEndian.Uint64(magic[:]) != ring.Magic {
		return false, false
	}
	n -= len(magic)
	for i := range g.sites {
		old := g.sites[i].Old()
		if n < len(old) {
			return false, i > 0 || len(g.sites) == 0
		}
		n -= len(old)
		if !bytes.Equal(read[i][:len(old)], old) {
			return true, true
		}
	}
	return false, true
}

// sighted is what glimpses have seen.
type sighted struct {
	clean, probed int // processes
	last          int // a process with probes, or without if there was none
}

// look looks at all processes but those of the recorder and the target.
func (s *sighted) look(g *glimpse, but int) {
	all, _ := process.IDs() // without them none is seen
	for i := len(all) - 1; i >= 0; i-- {
		pid := all[i]
		if pid == but || pid == os.Getpid() {
			continue
		}
		switch probed, known := g.of(pid); {
		case probed:
			s.probed, s.last = s.probed+1, pid
		case known:
			if s.clean++; s.probed == 0 {
				s.last = pid
			}
		}
	}
}
