package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/recorder/internal/arguments"
	"github.com/callreel/callreel/recorder/internal/glob"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// maxCaptured is of how many functions arguments are recorded at most: each has code of its own.
const maxCaptured = 1024

// captures is what is recorded of arguments and results.
type captures struct {
	specs []captureSpec
	conds []conditionSpec
	table map[uint32]*stub.Captures // for stubs, by the target's function IDs
	reads bool                      // some stand in memory

	refused []refusedFunction // of those asked for
	noticed int

	mu    sync.Mutex // guards plans, which grow as libraries are loaded
	plans map[uint32]*capturePlans
	told  map[uint64]bool // what the reel's table says already, by the reel's ID<<1, plus 1 for returns
}

// captureSpec is one --args, or --ret.
type captureSpec struct {
	arguments.Spec
	flag     string
	atReturn bool
	hit      bool
}

// conditionSpec is one --if. Without a function it is of those that other options name.
type conditionSpec struct {
	text, function string
	list           []arguments.Condition
	hit            bool
}

// capturePlans are a function's.
type capturePlans struct{ entry, atReturn *arguments.Plan }

func (p *capturePlans) of(atReturn bool) *arguments.Plan {
	if atReturn {
		return p.atReturn
	}
	return p.entry
}

// newCaptures reads the options; it returns nil if there is nothing to record.
func newCaptures(opt *Options) (*captures, error) {
	c := &captures{table: map[uint32]*stub.Captures{}, plans: map[uint32]*capturePlans{}, told: map[uint64]bool{}}
	for _, k := range []struct {
		flag     string
		list     []string
		atReturn bool
	}{{"--args", opt.Args, false}, {"--ret", opt.Returns, true}} {
		for _, text := range k.list {
			spec, err := arguments.Parse(text)
			if err != nil {
				return nil, &ArgumentError{k.flag, text, err}
			}
			c.specs = append(c.specs, captureSpec{Spec: spec, flag: k.flag, atReturn: k.atReturn})
		}
	}
	for _, text := range opt.Conditions {
		function, list, err := arguments.ParseConditions(text)
		if err != nil {
			return nil, &ArgumentError{"--if", text, err}
		}
		if function == "" && len(c.specs) == 0 {
			return nil, &ArgumentError{"--if", text, errors.New("say of which function: --if 'F: size > 4096', or --args F")}
		}
		c.conds = append(c.conds, conditionSpec{text: text, function: function, list: list})
	}
	if len(c.specs)+len(c.conds) == 0 {
		return nil, nil
	}
	return c, nil
}

// records says whether values of a function are asked for.
func (c *captures) records(names []string) bool {
	return slices.ContainsFunc(c.specs, func(s captureSpec) bool { return glob.MatchAny(s.Function, names) })
}

// on says whether a condition is on calls of a function.
func (c *captures) on(k *conditionSpec, names []string) bool {
	if k.function == "" {
		return c.records(names)
	}
	return glob.MatchAny(k.function, names)
}

// wants says whether a function's arguments, or its result, are asked for.
func (c *captures) wants(names []string) bool {
	return c != nil && (c.records(names) || slices.ContainsFunc(c.conds, func(k conditionSpec) bool { return c.on(&k, names) }))
}

// refuse notes that a function can't be probed, for what its arguments are asked for.
func (c *captures) refuse(f *plan.Function) {
	if c == nil {
		return
	}
	if names := glob.Spellings(f.Names()); c.wants(names) {
		c.refused = append(c.refused, refusedFunction{names, f.Reason.String()})
	}
}

// refusedFunction is one that can't be probed.
type refusedFunction struct {
	names []string
	why   string
}

// refusal says why the functions of a name can't be probed, nil if there are none.
func (c *captures) refusal(flag, function string) error {
	for _, r := range c.refused {
		if glob.MatchAny(function, r.names) {
			return &ArgumentError{flag, function, fmt.Errorf("%s can't be probed: %s", r.names[0], r.why)}
		}
	}
	return nil
}

// unmatched returns an error for the first that matched nothing.
func (c *captures) unmatched(sample []string) error {
	if c == nil {
		return nil
	}
	for i := range c.specs {
		if s := &c.specs[i]; !s.hit {
			if err := c.refusal(s.flag, s.Function); err != nil {
				return err
			}
			return glob.NoMatch(s.flag, s.Function, sample)
		}
	}
	for i := range c.conds {
		if k := &c.conds[i]; !k.hit {
			if err := c.refusal("--if", k.function); err != nil {
				return err
			}
			return &NoMatchError{Flag: "--if", Glob: cmp.Or(k.function, k.text), Near: glob.Near(k.function, sample)}
		}
	}
	return nil
}

// plan finds out where the arguments of an image's functions stand. It must be done before the image's functions are taken over by an arena.
// Of an image that comes later what can't be recorded is only told.
func (c *captures) plan(ctx context.Context, im *mapped.Image, late bool, notice func(format string, args ...any)) error {
	if c == nil {
		return nil
	}
	notice = c.few(notice)
	var debug *arguments.Debug
	var missing error
	opened := false
	defer func() {
		if debug != nil {
			debug.Close()
		}
	}()
	for i := range im.Traced {
		fn := &im.Traced[i]
		names := glob.Spellings(fn.Names())
		if !c.wants(names) {
			continue
		}
		if !opened {
			opened = true
			if debug, missing = arguments.Open(ctx, im.Object); missing != nil {
				debug = nil
				if !errors.Is(missing, arguments.ErrNoDebug) {
					notice("%v", missing)
				}
			}
		}
		sig, err := debug.Function(fn.Addr, fn.Names(), im.Probe.Go != nil)
		if err != nil {
			return err
		}
		if err := c.planFunction(im, fn, names, sig, notice); err != nil {
			if !late {
				return err
			}
			notice("%v", err)
		}
	}
	return nil
}

// few lets a handful of notices through: a glob may match very many functions.
func (c *captures) few(notice func(format string, args ...any)) func(format string, args ...any) {
	const most = 8
	return func(format string, args ...any) {
		switch c.noticed++; {
		case c.noticed <= most:
			notice(format, args...)
		case c.noticed == most+1:
			notice("there are more functions of which not all can be recorded that was asked for")
		}
	}
}

// planFunction plans what is recorded of one function.
func (c *captures) planFunction(im *mapped.Image, fn *stub.Probe, names []string, sig *arguments.Signature, notice func(format string, args ...any)) error {
	var p capturePlans
	var err error
	for _, atReturn := range []bool{false, true} {
		var values []arguments.Expression
		var asked *captureSpec
		all := false
		for k := range c.specs {
			s := &c.specs[k]
			if s.atReturn != atReturn || !glob.MatchAny(s.Function, names) {
				continue
			}
			s.hit, asked = true, s
			values = append(values, s.Values...)
			all = all || len(s.Values) == 0
		}
		if asked == nil {
			continue
		}
		var plan *arguments.Plan
		if atReturn {
			plan, err = sig.Return(all, values)
			p.atReturn = plan
		} else {
			plan, err = sig.Entry(all, values)
			p.entry = plan
		}
		if err == nil && !atReturn {
			err = plan.CheckEntry(im.Probe.ChangedBefore(fn.Function))
		}
		if err != nil {
			if strings.ContainsAny(asked.Function, "*?[") {
				if !errors.Is(err, arguments.ErrVoid) {
					notice("%s %s: %s: %v", asked.flag, asked.Function, demangle.Short(fn.Name), err)
				}
				if atReturn {
					p.atReturn = nil
				} else {
					p.entry = nil
				}
				continue
			}
			return &ArgumentError{asked.flag, asked.Function, err}
		}
		for _, left := range plan.Left {
			notice("%s %s: %s", asked.flag, demangle.Short(fn.Name), left)
		}
		if why := sig.Missing(); why != nil && len(values) == 0 {
			notice("%s %s: %v, so its registers are recorded as the System V ABI has them", asked.flag, demangle.Short(fn.Name), why)
		}
	}
	when, where, err := c.conditions(im, fn, names, sig)
	if err != nil {
		return err
	}
	if len(where) > 0 {
		if p.entry == nil {
			p.entry = &arguments.Plan{Capture: &stub.Capture{}}
		}
		p.entry.Capture.Conditions = where
	}
	return c.put(fn, &p, when)
}

// conditions are those on calls of a function: on registers, and on memory.
func (c *captures) conditions(im *mapped.Image, fn *stub.Probe, names []string, sig *arguments.Signature) (when, where []stub.Condition, err error) {
	for i := range c.conds {
		k := &c.conds[i]
		if !c.on(k, names) {
			continue
		}
		k.hit = true
		for j := range k.list {
			cond, err := sig.Condition(&k.list[j])
			if changed, _ := im.Probe.ChangedBefore(fn.Function); err == nil && cond.Value.Origin == stub.OriginReg && changed>>cond.Value.Reg&1 != 0 {
				err = fmt.Errorf("%s: its register is changed before the first instruction that can be probed", k.list[j].Text)
			}
			if err != nil {
				return nil, nil, &ArgumentError{"--if", fn.Name, err}
			}
			if cond.Possible() {
				when = append(when, cond)
			} else {
				where = append(where, cond)
			}
		}
	}
	return when, where, nil
}

// put adds a function's plans.
func (c *captures) put(fn *stub.Probe, p *capturePlans, when []stub.Condition) error {
	table := &stub.Captures{Conditions: when}
	if p.entry != nil && len(p.entry.Capture.Fields)+len(p.entry.Capture.Conditions) > 0 {
		table.Entry = p.entry.Capture
	}
	if p.atReturn != nil && len(p.atReturn.Capture.Fields) > 0 {
		table.Return = p.atReturn.Capture
	}
	if table.Entry == nil && table.Return == nil && len(when) == 0 {
		return nil
	}
	for _, capture := range []*stub.Capture{table.Entry, table.Return} {
		if capture == nil {
			continue
		}
		if err := capture.LayOut(); err != nil {
			return &ArgumentError{"--args", fn.Name, err}
		}
		c.reads = c.reads || capture.Reads()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.plans) >= maxCaptured {
		return &ArgumentError{"--args", fn.Name, fmt.Errorf("arguments of more than %d functions", maxCaptured)}
	}
	c.plans[fn.ID] = p
	c.table[fn.ID] = table
	return nil
}

// describe says in the reel what is recorded of a function; id is the reel's. told is what the reel's table says already.
func (c *captures) describe(w ArgumentsTaker, told map[uint64]bool, id uint32, p *capturePlans) error {
	for _, atReturn := range []bool{false, true} {
		plan := p.of(atReturn)
		key := uint64(id) << 1
		if atReturn {
			key |= 1
		}
		if plan == nil || told[key] {
			continue
		}
		told[key] = true
		if err := w.AddArguments(id, atReturn, plan.Arguments); err != nil {
			return err
		}
	}
	return nil
}

// describeAll says so of all functions, whose IDs are the reel's.
func (c *captures) describeAll(to Destination) error {
	w, ok := to.(ArgumentsTaker)
	if c == nil || !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, p := range c.plans {
		if err := c.describe(w, c.told, id, p); err != nil {
			return err
		}
	}
	return nil
}

// AppendWith passes a thread's events on, with the values that they carry.
func (k *known) AppendWith(events []reel.Event, payloads []ring.Payload) error {
	events, payloads = k.switches.pick(&k.open, events, payloads)
	c := k.captures
	w, takes := k.to.(ArgumentsTaker)
	thread, does := k.DestinationThread.(ValuesTaker)
	if c == nil || !takes || !does {
		return k.append(events)
	}
	sets, plans := c.decode(events, payloads)
	if err := k.functions.Translate(events); err != nil {
		return err
	}
	if err := c.describeNew(w, c.told, events, sets, plans); err != nil {
		return err
	}
	return thread.AppendWith(events, sets)
}

// describeNew says what is recorded of functions whose first values have come.
func (c *captures) describeNew(w ArgumentsTaker, told map[uint64]bool, events []reel.Event, sets []reel.ValueSet, plans []*capturePlans) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range sets {
		if err := c.describe(w, told, events[sets[i].Number].ID(), plans[i]); err != nil {
			return err
		}
	}
	return nil
}

// decode reads the values of events, whose IDs are the target's.
func (c *captures) decode(events []reel.Event, payloads []ring.Payload) (sets []reel.ValueSet, plans []*capturePlans) {
	if c == nil || len(payloads) == 0 {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var values []stub.Value
	for _, p := range payloads {
		e := &events[p.Event]
		all := c.plans[e.ID()]
		if all == nil || all.of(e.IsExit()) == nil {
			continue
		}
		values = all.of(e.IsExit()).Capture.Decode(p.Data, values[:0])
		set := reel.ValueSet{Number: uint64(p.Event), Values: make([]reel.Value, len(values))}
		for i, v := range values {
			set.Values[i] = reel.Value{State: reel.ValueState(v.State), Bits: v.Bits, Bytes: v.Bytes, Cut: v.Cut}
		}
		sets, plans = append(sets, set), append(plans, all)
	}
	return sets, plans
}
