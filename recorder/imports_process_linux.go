package recorder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/callreel/callreel/internal/glob"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/imports"
)

// ImportsOfProcess lists the slots of a running process, which is not stopped, for functions: where each leads. With the error, which may be about
// files that are damaged, or globs that match nothing, there are those that can be read.
func ImportsOfProcess(ctx context.Context, pid int, q ImportQuery) ([]ImportSlot, error) {
	p, err := process.OpenForCode(pid)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	p.LimitMemory(q.Memory)
	all, err := imports.Read(p, object.NewAllowance(q.Memory))
	if err != nil {
		return nil, err
	}
	defer all.Close()
	if len(all.Images) == 0 {
		return nil, fmt.Errorf("callreel: process %d: %w: it has no ELF file's code mapped", pid, ErrNothing)
	}
	l := importList{q: &q, modules: make([]bool, len(q.Modules)), names: make([]bool, len(q.Names))}
	var errs []error
	for _, im := range all.Images {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l.seenModules = append(l.seenModules, im.Module)
		if len(q.Modules) > 0 && !glob.Any(q.Modules, l.modules, []string{im.Module}) {
			continue
		}
		slots, err := all.Slots(im, func(s *object.Slot) bool { return s.Kind != object.SlotWord || q.Words })
		errs = append(errs, err)
		for i := range slots {
			l.add(all, &slots[i])
		}
	}
	return l.slots, errors.Join(append(errs, l.check())...)
}

// importList gathers slots.
type importList struct {
	q                      *ImportQuery
	modules, names         []bool
	seenModules, seenNames []string
	slots                  []ImportSlot
}

func (l *importList) add(all *imports.Process, s *imports.Slot) {
	if !all.IsFunction(s) {
		return
	}
	names := s.Names()
	const most = 1 << 16
	if len(l.seenNames) < most {
		l.seenNames = append(l.seenNames, strings.Clone(s.Symbol.Name))
	}
	if len(l.q.Names) > 0 && !glob.Any(l.q.Names, l.names, names) {
		return
	}
	if len(l.q.Verdicts) > 0 && !slices.Contains(l.q.Verdicts, s.Verdict.String()) {
		return
	}
	// Names alias the files, which are about to be closed.
	x := ImportSlot{Module: s.Image.Module, Symbol: strings.Clone(s.Symbol.Name), Version: strings.Clone(s.Symbol.Version), Kind: s.Kind.String(),
		Address: s.Addr, Value: s.Value, Verdict: s.Verdict.String(), To: s.By, Function: strings.Clone(s.Name), Offset: s.Off, ExpectedAt: s.Target}
	if s.Expected != nil {
		x.Expected = s.Expected.Module
	}
	l.slots = append(l.slots, x)
}

func (l *importList) check() error {
	for i, g := range l.q.Modules {
		if !l.modules[i] {
			return glob.NoMatch("-m", g, l.seenModules)
		}
	}
	for i, g := range l.q.Names {
		if !l.names[i] {
			return glob.NoMatch("--name", g, l.seenNames)
		}
	}
	return nil
}
