package target

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/recovery"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// listFrames tells the stub of _dl_find_object, wherever there is one, of all arenas. The list may get longer while the target runs:
// an entry's address is written last.
func (s *Target) listFrames() error {
	for _, a := range s.Arenas {
		if a.Code == nil || a.Code.UnwindList == 0 {
			continue
		}
		at := uint64(a.Code.UnwindList)
		for _, other := range s.Arenas[:min(len(s.Arenas), stub.MaxUnwindEntries)] {
			if other.Base == 0 {
				continue // not mapped
			}
			if err := s.writeCode(a, at+8, other.Size); err != nil {
				return err
			}
			if err := s.writeCode(a, at, other.Base); err != nil {
				return err
			}
			at += stub.UnwindEntry
		}
	}
	return nil
}

// writeCode writes a word of an arena's code, at a multiple of 8.
func (s *Target) writeCode(a *Arena, off, v uint64) error {
	if a.Mem != nil {
		atomic.StoreUint64((*uint64)(unsafe.Pointer(&a.Mem[off])), v)
		return nil
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	_, err := s.Process.WriteAt(b[:], a.Base+off)
	return err
}

// splitLate takes out of sites those by which the unwind information of stubs is found. They are restored last: an exception or a
// cancellation may be on its way from a PC in a stub.
func splitLate(p *process.Process, r *recovery.Record, sites []stub.Patch) (early, late []stub.Patch) {
	var hooks []uint64
	for _, a := range r.Arenas {
		var head [stub.UnwindHead]byte
		if _, err := p.ReadAt(head[:], a.Base); err != nil {
			continue // it isn't there: its recorder died before it had mapped it
		}
		if at := stub.UnwindHook(&head); at != 0 {
			hooks = append(hooks, at)
		}
	}
	for i := range sites {
		s := &sites[i]
		if !slices.Contains(hooks, s.Addr) {
			continue
		}
		// What is on an island, or below another site, is restored with all others.
		if _, jumps := generator().JumpOf(s); jumps && s.Level <= 1 && !s.Hosted {
			late = append(late, *s)
		}
	}
	if len(late) == 0 {
		return sites, nil
	}
	return slices.DeleteFunc(slices.Clone(sites), func(s stub.Patch) bool { return slices.Contains(late, s) }), late
}
