package follow

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// A glimpse reads whether a process has the rings, and probes: of some thousand functions with a few system calls. So it sees processes, too,
// that have ended before more can be found out, let alone done. What it sees is believed of the family only: that it has no probes any more.
type glimpse struct {
	rings uint64       // where they are
	sites []stub.Patch // that have been written
}

// sitesAtOnce is how many sites one system call reads; process_vm_readv takes 1024 pieces.
const sitesAtOnce = 512

// of looks at a process. known is false for one that hasn't the rings, or has ended before all sites were seen, or one with a probe.
func (g *glimpse) of(pid int) (probed, known bool) {
	var magic [8]byte
	if n, err := readMany(pid, [][]byte{magic[:]}, []uint64{g.rings}); err != nil || n < len(magic) || binary.LittleEndian.Uint64(magic[:]) != ring.Magic {
		return false, false
	}
	for sites := range slices.Chunk(g.sites, sitesAtOnce) {
		if probed, known = probedAny(pid, sites); probed || !known {
			return probed, known
		}
	}
	return false, true
}

// probedAny is the same of some sites. Those that can't be read, as of a library that was unloaded, have no probes.
func probedAny(pid int, sites []stub.Patch) (probed, known bool) {
	bufs, at := make([][]byte, len(sites)), make([]uint64, len(sites))
	all := make([]byte, len(sites)*stub.MaxPatch)
	for i := range sites {
		bufs[i], at[i] = all[i*stub.MaxPatch:][:len(sites[i].Old())], sites[i].Addr
	}
	for len(sites) > 0 {
		n, err := readMany(pid, bufs, at)
		if err != nil && err != unix.EFAULT {
			return false, false
		}
		done := 0
		for ; done < len(sites) && n >= len(bufs[done]); done++ {
			if n -= len(bufs[done]); !bytes.Equal(bufs[done], sites[done].Old()) {
				return true, true
			}
		}
		done = min(done+1, len(sites)) // it ended at one that isn't there
		sites, bufs, at = sites[done:], bufs[done:], at[done:]
	}
	return false, true
}

// readMany reads pieces of a process's memory, up to the first that can't be read (process_vm_readv(2)), and returns how many bytes.
func readMany(pid int, bufs [][]byte, at []uint64) (int, error) {
	to, from := make([]unix.Iovec, len(bufs)), make([]unix.RemoteIovec, len(bufs))
	for i, buf := range bufs {
		to[i].Base = &buf[0]
		to[i].SetLen(len(buf))
		from[i] = unix.RemoteIovec{Base: uintptr(at[i]), Len: len(buf)}
	}
	return unix.ProcessVMReadv(pid, to, from, 0)
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
