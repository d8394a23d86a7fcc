package ring

import (
	"bytes"
	"slices"
	"sync/atomic"
)

// registry reads the ring of threads that wrote for the first time.
type registry struct {
	seen uint64   // registrations read, or left open
	open []uint64 // those that were begun and not ended: the thread is about to, or was killed
}

// maxRegistrations is how many registrations are read at once. A machine doesn't make so many threads in a hundredth of a second.
const maxRegistrations = 4096

// read calls f for the threads that have registered since the last call, or for some of them, up to its first error.
func (r *registry) read(m *Memory, f func(tid, pid int, name string) error) (err error) {
	n := atomic.LoadUint64(m.u64(HdrRegistered))
	if n-r.seen > RegistrySize {
		r.seen = n - RegistrySize // the ring has gone round: what was there before is written over
	}
	most := maxRegistrations
	r.open = slices.DeleteFunc(r.open, func(i uint64) bool {
		if n-i > RegistrySize {
			return true
		}
		if err != nil || most == 0 {
			return false
		}
		done, e := r.entry(m, i, f)
		if err = e; done {
			most--
		}
		return done
	})
	for ; r.seen != n && most > 0 && err == nil; r.seen++ {
		var done bool
		if done, err = r.entry(m, r.seen, f); !done && err == nil && len(r.open) < RegistrySize {
			r.open = append(r.open, r.seen)
		}
		most--
	}
	return err
}

// all calls read until nothing is left, which is when a whole ring has been read.
func (r *registry) all(m *Memory, read func() error) error {
	for range RegistrySize/maxRegistrations + 1 {
		if err := read(); err != nil {
			return err
		}
		if r.seen == atomic.LoadUint64(m.u64(HdrRegistered)) {
			break
		}
	}
	return nil
}

// entry calls f for a registration, if it is complete.
func (r *registry) entry(m *Memory, i uint64, f func(tid, pid int, name string) error) (done bool, err error) {
	at := RegistryOff + i%RegistrySize*RegistryEntry
	tid := int(atomic.LoadUint32(m.u32(at + RegTID)))
	if tid == 0 {
		return false, nil
	}
	name, _, _ := bytes.Cut(m.mem[at+RegName:at+RegName+16], []byte{0})
	if tid < MaxTID {
		if err := f(tid, int(atomic.LoadUint32(m.u32(at+RegPID))), string(name)); err != nil {
			return false, err
		}
	}
	clear(m.mem[at : at+RegistryEntry])
	return true, nil
}
