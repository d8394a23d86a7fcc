package ring

import (
	"bytes"
	"sync/atomic"
)

// registry reads the ring of threads that wrote for the first time.
type registry struct {
	seen uint64 // registrations read
}

// read calls f for the threads that have registered since the last call, up to its first error.
func (r *registry) read(m *Memory, f func(tid, pid int, name string) error) error {
	n := atomic.LoadUint64(m.u64(HdrRegistered))
	if n-r.seen > RegistrySize {
		r.seen = n - RegistrySize // the ring has gone round: what was there before is written over
	}
	for ; r.seen != n; r.seen++ {
		at := RegistryOff + r.seen%RegistrySize*RegistryEntry
		tid := int(atomic.LoadUint32(m.u32(at + RegTID)))
		if tid == 0 {
			return nil // not complete yet
		}
		name, _, _ := bytes.Cut(m.mem[at+RegName:at+RegName+16], []byte{0})
		if tid < MaxTID {
			if err := f(tid, int(atomic.LoadUint32(m.u32(at+RegPID))), string(name)); err != nil {
				return err
			}
		}
		clear(m.mem[at : at+RegistryEntry])
	}
	return nil
}
