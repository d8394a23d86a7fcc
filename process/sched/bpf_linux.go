package sched

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// bpfSource has programs at the scheduler's tracepoints.
type bpfSource struct {
	maps    []*ebpf.Map
	loaded  []*ebpf.Program
	links   []link.Link
	mapped  [][]byte
	watched []uint64
	cpus    []*bpfRing
	all     []ring // the same

	pages    *perfSource // tells of page faults; nil if they aren't told
	noFaults error       // why not
}

// openBPF loads the programs and lets them begin; nothing is watched yet. The error says why not, and what would help.
func openBPF(o Options) (_ *bpfSource, err error) {
	s := &bpfSource{}
	defer func() {
		if err != nil {
			err = errors.Join(whyNoBPF(err), s.close())
		}
	}()
	if err := probeBPF(); err != nil {
		return nil, err
	}
	// Reading the kernel's types takes most of the time: once for all programs.
	types := btf.NewCache()
	spec, err := types.Kernel()
	if err != nil {
		return nil, err
	}
	p := &programs{children: o.Children}
	if p.layout, err = readLayout(spec); err != nil {
		return nil, err
	}
	if p.level, p.namespace, err = p.ownNamespace(); err != nil {
		return nil, err
	}
	if p.cpus, err = ebpf.PossibleCPU(); err != nil {
		return nil, err
	}
	p.places = places(o.bufferBytes(), p.cpus)
	if err := s.makeMaps(p); err != nil {
		return nil, err
	}
	// Wake-ups before switches: so that a switch that is told has its wake-up told.
	for _, t := range []struct {
		at   string
		code func() asm.Instructions
	}{
		{"sched_process_fork", p.forks},
		{"sched_waking", p.wakes},
		{"sched_wakeup", p.woken},
		{"sched_wakeup_new", p.born},
		{"sched_process_exec", p.execs},
		{"sched_switch", p.switches},
	} {
		err := s.attach(types, t.at, t.code())
		for t.at == "sched_waking" && err != nil && len(p.preempt) > 0 {
			p.preempt = p.preempt[1:]
			err = s.attach(types, t.at, t.code())
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.at, err)
		}
	}
	s.addFaults(o)
	return s, nil
}

func (s *bpfSource) attach(types *btf.Cache, at string, code asm.Instructions) error {
	const name = "callreel"
	loaded, err := ebpf.NewCollectionWithOptions(&ebpf.CollectionSpec{
		Programs: map[string]*ebpf.ProgramSpec{name: {
			Name: name, Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: at,
			Instructions: code, License: "GPL", // the kernel's word for programs that may call these helpers
		}},
	}, ebpf.CollectionOptions{Cache: types})
	if err != nil {
		return err
	}
	prog := loaded.DetachProgram(name)
	loaded.Close()
	s.loaded = append(s.loaded, prog)
	l, err := link.AttachTracing(link.TracingOptions{Program: prog, AttachType: ebpf.AttachTraceRawTp})
	if err != nil {
		return err
	}
	s.links = append(s.links, l)
	return nil
}

// probeBPF fails early, before the kernel's BTF is read, where BPF isn't permitted.
func probeBPF() error {
	// Kernels before 5.11 count maps against the memory that may be locked.
	if err := rlimit.RemoveMemlock(); err != nil && !errors.Is(err, unix.EPERM) {
		return err
	}
	return nil
}

// The bounds of a processor's ring, in records.
const (
	minPlaces = 1 << 10
	maxPlaces = 1 << 18
)

// places is how many records a processor's ring has, so that all have at most bytes.
func places(bytes, cpus int) int {
	n := maxPlaces
	for n > minPlaces && n*recordSize*cpus > bytes {
		n /= 2
	}
	return n
}

func (s *bpfSource) makeMaps(p *programs) error {
	const mappable = unix.BPF_F_MMAPABLE
	make := func(name string, size, n uint32, flags uint32) (*ebpf.Map, error) {
		m, err := ebpf.NewMap(&ebpf.MapSpec{Name: name, Type: ebpf.Array, KeySize: 4, ValueSize: size, MaxEntries: n, Flags: flags})
		if err != nil {
			return nil, fmt.Errorf("map %s: %w", name, err)
		}
		s.maps = append(s.maps, m)
		return m, nil
	}
	var err1, err2, err3, err4 error
	p.state, err1 = make("callreel_state", uint32(stateSize*p.cpus), 1, mappable)
	p.records, err2 = make("callreel_events", recordSize, uint32(p.places*p.cpus), mappable)
	p.watched, err3 = make("callreel_procs", 8*watchedWords, 1, mappable)
	p.wakers, err4 = make("callreel_wakers", 8*wakerPlaces, 1, 0)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	state, err1 := s.mapMemory(p.state, stateSize*p.cpus)
	records, err2 := s.mapMemory(p.records, recordSize*p.places*p.cpus)
	watched, err3 := s.mapMemory(p.watched, 8*watchedWords)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	s.watched = unsafe.Slice((*uint64)(unsafe.Pointer(&watched[0])), watchedWords)
	for k := range p.cpus {
		s.cpus = append(s.cpus, &bpfRing{
			cpu:    int32(k),
			counts: p.execStart != 0,
			state:  state[stateSize*k:][:stateSize],
			data:   records[recordSize*p.places*k:][:recordSize*p.places],
		})
	}
	s.all = asRings(s.cpus)
	return nil
}

func (s *bpfSource) mapMemory(m *ebpf.Map, size int) ([]byte, error) {
	page := os.Getpagesize()
	b, err := unix.Mmap(m.FD(), 0, (size+page-1)&^(page-1), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map memory: %w", err)
	}
	s.mapped = append(s.mapped, b)
	return b, nil
}

// add watches a process from the next switch on.
func (s *bpfSource) add(pid int, tids []int) error {
	if pid <= 0 || pid >= watchedWords*64 {
		return fmt.Errorf("process %d: %w", pid, unix.ESRCH)
	}
	atomic.OrUint64(&s.watched[pid>>6], 1<<(pid&63))
	if s.pages == nil {
		return nil
	}
	if err := s.pages.add(pid, tids); err != nil {
		s.noFaults = fmt.Errorf("bpf: page faults of process %d: %w", pid, err)
	}
	return nil
}

func (s *bpfSource) forget(pid int) {
	if pid > 0 && pid < watchedWords*64 {
		atomic.AndUint64(&s.watched[pid>>6], ^(uint64(1) << (pid & 63)))
	}
	if s.pages != nil {
		s.pages.forget(pid)
	}
}

// stop ends the programs: what they have written can still be read.
func (s *bpfSource) stop() error {
	var errs []error
	for _, l := range s.links {
		errs = append(errs, l.Close())
	}
	for _, p := range s.loaded {
		errs = append(errs, p.Close())
	}
	s.links, s.loaded = nil, nil
	if s.pages != nil {
		errs = append(errs, s.pages.stop())
	}
	return errors.Join(errs...)
}

func (s *bpfSource) close() error {
	errs := []error{s.stop()}
	for _, b := range s.mapped {
		errs = append(errs, unix.Munmap(b))
	}
	for _, m := range s.maps {
		errs = append(errs, m.Close())
	}
	s.mapped, s.maps, s.cpus, s.watched = nil, nil, nil, nil
	if s.pages != nil {
		errs = append(errs, s.pages.close())
	}
	return errors.Join(errs...)
}

func (s *bpfSource) name() string  { return SourceBPF }
func (s *bpfSource) wakeUps() bool { return true }
func (s *bpfSource) repeats() bool { return false }
func (s *bpfSource) rings() []ring { return s.all }

// late is as late as a record can be whose boundary the kernel's count moves.
func (s *bpfSource) late() uint64 {
	if len(s.cpus) == 0 || !s.cpus[0].counts {
		return 0
	}
	return latest
}

func whyNoBPF(err error) error {
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, ebpf.ErrNotSupported) {
			return fmt.Errorf("bpf: %w: a kernel of Linux 5.15 or newer with BTF (CONFIG_DEBUG_INFO_BTF) is needed: %w", ErrUnavailable, err)
		}
		return fmt.Errorf("bpf: %w: %w", ErrUnavailable, firstLine{err})
	}
	return fmt.Errorf("bpf: %w: run as root, or with CAP_BPF and CAP_PERFMON; in a container, also let its seccomp profile permit bpf: %w", ErrUnavailable, firstLine{err})
}

// firstLine is an error in one line: the verifier's has a log behind it.
type firstLine struct{ error }

func (e firstLine) Error() string {
	line, _, _ := strings.Cut(e.error.Error(), "\n")
	return line
}
func (e firstLine) Unwrap() error { return e.error }
