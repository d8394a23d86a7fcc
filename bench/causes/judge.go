package causes

import (
	"slices"
	"strings"
)

// A Verdict is what an answer was worth.
type Verdict struct {
	Calls int // that were judged; of a plant those that have met the cause
	First int // of them: the first cause is the true one
	Three int // of them: one of the first three is
	// Listed are those of Three, and those for which nothing is claimed, and the true cause is among the first three parts of what they took
	// longer.
	Listed int
	// Place is how many have the true place, kind and state first, whoever was waited for.
	Place int
	// Claims is how many calls anything was claimed for, ReadyClaims for how many of them the first claim is that the
	// thread was kept from the processor.
	Claims, ReadyClaims int
	// Said is the first cause of the first call that First, or else anything at all, is true of.
	Said string
}

// FirstRight says whether most calls have the true cause first.
func (v *Verdict) FirstRight() bool { return 2*v.First > v.Calls }

// ThreeRight says whether most calls have the true cause among the first three.
func (v *Verdict) ThreeRight() bool { return 2*v.Three > v.Calls }

// Judge holds an answer against the truth of a plant.
func (p *Plant) Judge(a Answer) Verdict {
	calls := a.Calls
	if !p.Truth.None() {
		calls = a.atLeast(p.Slow)
	}
	v := Verdict{Calls: len(calls)}
	right := -1
	for _, c := range calls {
		if len(c.Causes) == 0 {
			v.Listed += count(p.Truth.among(c.Natural))
			continue
		}
		v.Claims++
		first := c.Causes[0]
		if first.State == Ready {
			v.ReadyClaims++
		}
		if p.Truth.placed(&first) {
			v.Place++
		}
		isRight := p.Truth.is(&first)
		if isRight {
			v.First++
		}
		if p.Truth.among(c.Causes) {
			v.Three++
			v.Listed++
		}
		// What is wrong is what has to be seen, if most are wrong; that is known at the end.
		if v.Said == "" || isRight && right < 0 {
			v.Said = first.words()
		}
		if isRight {
			right = 1
		}
	}
	if right > 0 && !v.FirstRight() {
		v.Said = p.firstWrong(calls)
	}
	return v
}

func (p *Plant) firstWrong(calls []Call) string {
	for _, c := range calls {
		if len(c.Causes) > 0 && !p.Truth.is(&c.Causes[0]) {
			return c.Causes[0].words()
		}
	}
	return ""
}

// words is a cause in one line, its kind and state with it.
func (c *Cause) words() string {
	said, _, _ := strings.Cut(strings.TrimSpace(c.Text), "\n")
	if said == "" {
		said = strings.Join(c.Path, " > ")
	}
	said += " [" + c.Kind + ", " + c.State
	if c.WaitsFor != nil {
		said += ", waits for " + c.WaitsFor.Function
	}
	return said + "]"
}

// ListedRight says whether most calls have the true cause among the first three, claimed or not.
func (v *Verdict) ListedRight() bool { return 2*v.Listed > v.Calls }

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// among says whether the true cause is among the first three.
func (t *Truth) among(list []Cause) bool {
	return slices.ContainsFunc(list[:min(3, len(list))], func(c Cause) bool { return t.is(&c) })
}

// is says whether a cause is the true one, with who was waited for.
func (t *Truth) is(c *Cause) bool {
	if t.Else != nil && t.Else.is(c) {
		return true
	}
	if !t.here(c) {
		return false
	}
	if len(t.WaitsFor) == 0 {
		return true
	}
	return c.WaitsFor != nil && (named(t.WaitsFor, c.WaitsFor.Path...) || named(t.WaitsFor, c.WaitsFor.Function))
}

// placed says whether a cause has the true place, kind and state.
func (t *Truth) placed(c *Cause) bool { return t.here(c) || t.Else != nil && t.Else.here(c) }

func (t *Truth) here(c *Cause) bool {
	if t.None() || !slices.Contains(t.Kinds, c.Kind) || !slices.Contains(t.States, c.State) {
		return false
	}
	return slices.Contains(t.Path, "*") || named(t.Path, c.Path...)
}

// named says whether one of the functions is meant by one of the globs.
func named(globs []string, functions ...string) bool {
	for _, f := range functions {
		for _, g := range globs {
			if sameFunction(g, f) {
				return true
			}
		}
	}
	return false
}

// sameFunction says whether a glob means a function: without its arguments, versions and the suffixes of compilers, with its
// namespace or package, or without.
func sameFunction(glob, function string) bool {
	name := plainName(function)
	if match(glob, name) {
		return true
	}
	for _, mark := range []string{"::", "."} {
		if i := strings.LastIndex(name, mark); i >= 0 && match(glob, name[i+len(mark):]) {
			return true
		}
	}
	return false
}

// plainName strips what a demangler or a compiler adds to a name.
func plainName(name string) string {
	for _, suffix := range []string{"@", ".constprop.", ".part.", ".isra.", ".cold", ".lto_priv."} {
		if i := strings.Index(name, suffix); i > 0 {
			name = name[:i]
		}
	}
	depth, out := 0, strings.Builder{}
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c == '<' && !strings.HasSuffix(name[:i], "operator"):
			depth++
		case c == '>' && depth > 0:
			depth--
		case depth > 0:
		case c == '(' && i > 0 && name[i-1] != '.': // Go's methods are main.(*T).m
			if strings.HasPrefix(name[i:], "(anonymous namespace)") {
				i += len("(anonymous namespace)") - 1
				continue
			}
			return out.String()
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// match is a glob with * only, which also stands for slashes.
func match(glob, name string) bool {
	parts := strings.Split(glob, "*")
	if len(parts) == 1 {
		return glob == name
	}
	rest, found := strings.CutPrefix(name, parts[0])
	if !found {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
