package capture

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/internal/glob"
	"github.com/callreel/callreel/recorder/internal/arguments"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Notice tells the user something; its arguments are those of fmt.Printf.
type Notice = func(format string, args ...any)

// Plan finds out where the values of an image's functions stand. It must be done before the functions are taken over by an arena. The error
// is an *Error where something can't be recorded that was asked for by a function's name; what a glob matches besides is only told.
func (s *Set) Plan(ctx context.Context, im *mapped.Image, notice Notice) error {
	return s.plan(ctx, im, true, notice, func(err error) error { return err })
}

// PlanLate is Plan for an image that comes later: what can't be recorded is only told. So is, if stubs may not read the process's memory, which
// values are there. Conditions on such values stay, since more calls would be recorded without: it is for who maps stubs to refuse these.
func (s *Set) PlanLate(ctx context.Context, im *mapped.Image, mayRead bool, notice Notice) {
	tell := func(err error) error {
		notice("%v", err)
		return nil
	}
	if err := s.plan(ctx, im, mayRead, notice, tell); err != nil {
		notice("%v", err)
	}
}

// plan plans the functions that were taken. Those that can't be are left to failed.
func (s *Set) plan(ctx context.Context, im *mapped.Image, mayRead bool, notice Notice, failed func(error) error) error {
	if len(s.taken) == 0 {
		return nil
	}
	defer clear(s.taken)
	s.table = maps.Clone(s.table)
	notice = s.few(notice)
	debug, err := arguments.Open(ctx, im.Object, im.DebugFiles)
	if err != nil {
		debug = nil
		if !errors.Is(err, arguments.ErrNoDebug) {
			notice("%v", err)
		}
	} else {
		defer debug.Close()
	}
	for i := range im.Traced {
		fn := &im.Traced[i]
		names, wanted := s.taken[fn.ID]
		if !wanted {
			continue
		}
		sig, err := debug.Function(fn.Addr, fn.Names(), im.Probe.Go != nil)
		if err != nil {
			return err
		}
		p := planning{s: s, im: im, fn: fn, names: names, sig: sig, mayRead: mayRead, notice: notice}
		if err := p.run(); err != nil {
			if err = failed(err); err != nil {
				return err
			}
		}
	}
	return nil
}

// few lets a handful of notices through: a glob may match very many functions.
func (s *Set) few(notice Notice) Notice {
	const most = 8
	return func(format string, args ...any) {
		switch s.noticed++; {
		case s.noticed <= most:
			notice(format, args...)
		case s.noticed == most+1:
			notice("there are more functions of which not all can be recorded that was asked for")
		}
	}
}

// planning is the planning of one function.
type planning struct {
	s       *Set
	im      *mapped.Image
	fn      *stub.Probe
	names   []string
	sig     *arguments.Signature
	mayRead bool // stubs may read the process's memory
	notice  Notice
}

// run plans what is recorded of the function.
func (p *planning) run() error {
	var planned plans
	var err error
	if planned.entry, err = p.values(false); err != nil {
		return err
	}
	if planned.atReturn, err = p.values(true); err != nil {
		return err
	}
	inRegisters, inMemory, err := p.conditions()
	if err != nil {
		return err
	}
	if len(inMemory) > 0 {
		if planned.entry == nil {
			planned.entry = &arguments.Plan{Capture: &stub.Capture{}}
		}
		capture := planned.entry.Capture
		capture.Conditions = inMemory
	}
	return p.s.put(p.fn, &planned, inRegisters)
}

// values plans the values at the function's entry, or at its return. Without any, or where a glob matches a function that has none that
// can be recorded, there is no plan.
func (p *planning) values(atReturn bool) (*arguments.Plan, error) {
	values, asked, all := p.asked(atReturn)
	if asked == nil {
		return nil, nil
	}
	var plan *arguments.Plan
	var err error
	if atReturn {
		if plan, err = p.sig.Return(all, values); err == nil {
			changed, _ := p.changedBefore()
			err = plan.CheckReturn(changed)
		}
	} else if plan, err = p.sig.Entry(all, values); err == nil {
		err = plan.CheckEntry(p.changedBefore())
	}
	if err == nil && !p.mayRead {
		err = plan.OmitMemory("it is in memory, which a seccomp filter forbids to read (process_vm_readv)")
	}
	if err != nil {
		if !strings.ContainsAny(asked.Function, "*?[") {
			return nil, &Error{asked.flag, asked.Function, err}
		}
		if !errors.Is(err, arguments.ErrVoid) {
			p.notice("%s %s: %s: %v", asked.flag, asked.Function, demangle.Short(p.fn.Name), err)
		}
		return nil, nil
	}
	for _, omitted := range plan.Omitted {
		p.notice("%s %s: %s", asked.flag, demangle.Short(p.fn.Name), omitted)
	}
	if why := p.sig.Missing(); why != nil && len(values) == 0 {
		p.notice("%s %s: %v, so its registers are recorded as %s has them", asked.flag, demangle.Short(p.fn.Name), why, p.sig.Convention())
	}
	return plan, nil
}

// changedBefore says which registers are changed before the first instruction that can be probed.
func (p *planning) changedBefore() (registers uint32, vectors bool) {
	image := p.im.Probe
	return image.ChangedBefore(p.fn.Function)
}

// asked are the values that are asked for, and the last option that asks for any, nil if there is none; all is for all values.
func (p *planning) asked(atReturn bool) (values []arguments.Expression, last *valueSpec, all bool) {
	for _, v := range p.s.values {
		if v.atReturn != atReturn || !glob.MatchAny(v.Function, p.names) {
			continue
		}
		v.hit, last = true, v
		values = append(values, v.Values...)
		all = all || len(v.Values) == 0
	}
	return values, last, all
}

// conditions are those on calls of the function: on registers, and on memory.
func (p *planning) conditions() (inRegisters, inMemory []stub.Condition, err error) {
	for _, c := range p.s.conditions {
		if !p.s.on(c, p.names) {
			continue
		}
		c.hit = true
		for j := range c.list {
			cond, err := p.sig.Condition(&c.list[j])
			if changed, _ := p.changedBefore(); err == nil && cond.Value.Origin == stub.OriginReg && changed>>cond.Value.Reg&1 != 0 {
				err = fmt.Errorf("%s: its register is changed before the first instruction that can be probed", c.list[j].Text)
			}
			if err != nil {
				return nil, nil, &Error{"--if", p.fn.Name, err}
			}
			if cond.Possible() {
				inRegisters = append(inRegisters, cond)
			} else {
				inMemory = append(inMemory, cond)
			}
		}
	}
	return inRegisters, inMemory, nil
}

// captureOf is what stubs are asked for by a plan, nil if that is nothing.
func captureOf(p *arguments.Plan) *stub.Capture {
	if p == nil {
		return nil
	}
	c := p.Capture
	if len(c.Fields)+len(c.Conditions) == 0 {
		return nil
	}
	return c
}

// put adds a function's plans.
func (s *Set) put(fn *stub.Probe, p *plans, inRegisters []stub.Condition) error {
	captures := &stub.Captures{Conditions: inRegisters}
	captures.Entry, captures.Return = captureOf(p.entry), captureOf(p.atReturn)
	if captures.Entry == nil && captures.Return == nil && len(inRegisters) == 0 {
		return nil
	}
	for _, capture := range []*stub.Capture{captures.Entry, captures.Return} {
		if capture == nil {
			continue
		}
		if err := capture.LayOut(); err != nil {
			return &Error{"--args", fn.Name, err}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.plans) >= MaxFunctions {
		return &Error{"--args", fn.Name, fmt.Errorf("arguments of more than %d functions", MaxFunctions)}
	}
	s.plans[fn.ID] = p
	s.table[fn.ID] = captures
	return nil
}
