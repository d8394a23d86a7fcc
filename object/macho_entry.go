package object

// threadPC says where the program counter stands in the register state of
// LC_UNIXTHREAD (mach/i386/thread_status.h and its kin).
type threadPC struct {
	flavor uint32 // the kind of state
	index  int    // which register
}

// threadPCs lists the states that static programs and old executables start with.
func threadPCs(cpu uint32) (threadPC, bool) {
	switch cpu {
	case cpuX86:
		return threadPC{1, 10}, true
	case cpuAMD64:
		return threadPC{4, 16}, true
	case cpuARM:
		return threadPC{1, 15}, true
	case cpuARM64:
		return threadPC{6, 32}, true
	case cpuPPC:
		return threadPC{1, 0}, true
	case cpuPPC64:
		return threadPC{5, 0}, true
	}
	return threadPC{}, false
}

// findEntry sets the entry point, from LC_MAIN (a file offset) or LC_UNIXTHREAD (an
// address). A command that is too short leaves it unknown.
func (m *machFile) findEntry() {
	for _, c := range m.commands {
		b, err := m.slice(c.off, c.size)
		if err != nil {
			continue
		}
		switch c.kind {
		case lcMain:
			if len(b) >= 16 {
				m.entry, _ = m.addrOf(m.ByteOrder.Uint64(b[8:]))
			}
			return
		case lcUnixThread:
			m.entry = m.threadEntry(b)
			return
		}
	}
}

// threadEntry reads the program counter from the thread's state.
func (m *machFile) threadEntry(b []byte) uint64 {
	pc, ok := threadPCs(m.cpu)
	if !ok || len(b) < 16 || m.ByteOrder.Uint32(b[8:]) != pc.flavor {
		return 0
	}
	word := m.Class.AddrSize()
	at := 16 + pc.index*word
	if len(b) < at+word {
		return 0
	}
	return m.word(b[at:])
}

// addrOf returns the link address of a file offset.
func (m *machFile) addrOf(off uint64) (uint64, bool) {
	for k := range m.segments {
		s := &m.segments[k]
		if s.Type == SegmentLoad && off >= s.Off && off-s.Off < s.FileSize {
			return s.Addr + (off - s.Off), true
		}
	}
	return 0, false
}
