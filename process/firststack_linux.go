package process

// firstStackSize is how much of a program's first stack is told from others, from its top. What the kernel maps by itself is
// further below, whatever the stack's limit is (arch/x86/mm/mmap.c, mmap_base).
const firstStackSize = 8 << 20

// A FirstStack is the stack that the kernel made for the program, and the thread on it.
type FirstStack struct {
	TID   int    // as the target sees it
	Start uint64 // the lowest address that is told from other memory
	Size  uint64 // from there to its top, in bytes
}

// FirstStack returns the program's first stack. It is zero if that isn't known, or not which thread is there: none
// or several of those that run the program's code.
func (s *Stopped) FirstStack() (FirstStack, error) {
	maps, err := s.mapsOnce()
	if err != nil {
		return FirstStack{}, err
	}
	var first FirstStack
	below := uint64(0)
	for _, m := range maps {
		if m.Special == "[stack]" {
			first.Start = max(below, m.End-min(m.End, firstStackSize))
			first.Size = m.End - first.Start
			break
		}
		below = m.End
	}
	if first.Size == 0 {
		return FirstStack{}, nil
	}
	for _, t := range s.threads {
		if !t.stopped {
			continue
		}
		regs, err := t.Regs()
		if err != nil {
			return FirstStack{}, err
		}
		// The leader began there, and may be on a stack for signals now.
		if regs.SP()-first.Start >= first.Size && t.TID != s.p.pid {
			continue
		}
		if first.TID != 0 {
			return FirstStack{}, nil
		}
		if first.TID = t.TID; !s.p.sameNS {
			info, err := t.Info()
			if err != nil {
				return FirstStack{}, err
			}
			first.TID = info.NSTID
		}
	}
	if first.TID == 0 {
		return FirstStack{}, nil
	}
	return first, nil
}
