package recorder

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/callreel/callreel/mark/sdt"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/mapped"
)

// MarkersOfProcess lists the markers of a running process, which is not stopped.
func MarkersOfProcess(ctx context.Context, pid int, globs []string, c Choice) ([]MarkerSite, error) {
	p, err := process.OpenForCode(pid)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	p.LimitMemory(c.Memory)
	ch := chooseModules(c)
	none := func(...string) bool { return false }
	// What is chosen is only what has markers.
	search := mapped.Search{Chosen: none, NoFound: c.NoFound, Memory: object.NewAllowance(c.Memory), DebugFiles: c.debugFiles(),
		Notes: func(notes []sdt.Note) []sdt.Note { return notes }}
	images, _, err := search.Find(ctx, p)
	if err != nil {
		return nil, err
	}
	l := markerList{globs: globs, hit: make([]bool, len(globs))}
	goProgram := false
	for _, im := range images {
		goProgram = goProgram || im.Main && im.Probe.Go != nil
		if ch.Module(im.Module) {
			from := len(l.sites)
			l.add(ctx, im.Object, im.DebugFiles, im.Module, im.Slide, im.Notes, im.Marks, im.Plan)
			for i := range l.sites[from:] {
				s := &l.sites[from+i]
				s.Function = strings.Clone(s.Function) // it aliases the file, which is about to be closed
				if s.Semaphore != 0 {
					var b [2]byte
					if _, err := p.ReadAt(b[:], s.Semaphore+im.Slide); err == nil {
						s.Count = int(binary.LittleEndian.Uint16(b[:]))
					}
				}
			}
		}
		im.Close()
	}
	if len(l.sites) == 0 {
		if exe, _, err := p.Exe(); err == nil {
			if isGoWithoutMarkers(fmt.Sprintf("/proc/%d/exe", pid)) {
				return nil, fmt.Errorf("callreel: process %d (%s): %w", pid, exe, errGoMarkers)
			}
		}
	}
	if err := ch.Check(); err != nil {
		return nil, err
	}
	return l.sites, l.check()
}
