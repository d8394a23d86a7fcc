package choose

import (
	"fmt"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/glob"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/plan"
)

// wish asks for the functions that a glob matches, and notes what it is told.
type wish struct {
	glob string
	told []string
}

func (w *wish) Wants(names []string) bool         { return glob.MatchAny(w.glob, names) }
func (w *wish) Take(id uint32, names []string)    { w.told = append(w.told, fmt.Sprint(id, names)) }
func (w *wish) Refuse(names []string, why string) { w.told = append(w.told, fmt.Sprint(why, names)) }

// image has functions of these names, all of which can be probed but those that are called refused. Those called exec and name have a hook.
func image(names ...string) *mapped.Image {
	im := &mapped.Image{Probe: &plan.Image{}}
	for _, n := range names {
		f := plan.Function{Name: n, Tier: plan.TierExitSite, Size: 16, Sites: []plan.Site{{Role: plan.RoleEntry}}}
		switch n {
		case "refused":
			f.Refuse(plan.ReasonPreempted, 0)
		case "exec":
			f.Hook = plan.HookExec
		case "name":
			f.Hook = plan.HookPrctl
		}
		im.Plan = append(im.Plan, f)
	}
	return im
}

// picked are the functions that are recorded, with their IDs, and those that get hooks.
func picked(im *mapped.Image) (traced, hooks []string) {
	for i := range im.Traced {
		traced = append(traced, fmt.Sprint(im.Traced[i].Name, im.Traced[i].ID))
	}
	for i := range im.Hooked {
		hooks = append(hooks, im.Hooked[i].Name)
	}
	return traced, hooks
}

func TestWhatIsPickedHasIDsInOrder(t *testing.T) {
	im := image("a", "refused", "b", "name", "exec", "c")
	c := New(Rules{Exclude: []string{"b", "name", "exec"}})
	n := c.Pick(im, 7)
	if n.Seen != 3 || n.Traced != 2 || len(n.Refused) != 1 || n.Refused[plan.ReasonPreempted.String()] != 1 {
		t.Errorf("%+v", n)
	}
	traced, hooks := picked(im)
	if !slices.Equal(traced, []string{"a7", "c8"}) || !slices.Equal(hooks, []string{"name"}) || im.First != 7 || im.Unchosen {
		t.Errorf("%q from %d on, hooks %q", traced, im.First, hooks)
	}
	im = image("exec")
	New(Rules{Functions: []string{"x"}, Exec: true}).Pick(im, 1)
	if traced, hooks = picked(im); len(traced) != 0 || !slices.Equal(hooks, []string{"exec"}) || !im.Unchosen {
		t.Errorf("%q, hooks %q", traced, hooks)
	}
}

func TestWantersGetWhatTheRulesLeaveOut(t *testing.T) {
	args, when := &wish{glob: "[ab]"}, &wish{glob: "[br]*"}
	im := image("a", "b", "c", "refused", "d")
	c := New(Rules{Functions: []string{"c"}, Exclude: []string{"a"}, MinSize: 16, Inside: []string{"d"}}, args, when)
	n := c.Pick(im, 1)
	traced, _ := picked(im)
	if !slices.Equal(traced, []string{"a1", "b2", "c3", "d4"}) || n.Seen != 5 {
		t.Errorf("%q of %d", traced, n.Seen)
	}
	for i := range im.Traced {
		if fn := &im.Traced[i]; fn.Inside != (fn.Name == "d") {
			t.Errorf("%s: inside is %v", fn.Name, fn.Inside)
		}
	}
	if !slices.Equal(args.told, []string{"1 [a]", "2 [b]"}) || !slices.Equal(when.told, []string{"2 [b]", "preempted-inside[refused]"}) {
		t.Errorf("%q, %q", args.told, when.told)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

func TestImagesThatAreNotChosenOnlyGetHooks(t *testing.T) {
	w := &wish{glob: "*"}
	im := image("a", "name")
	im.Unchosen = true
	c := New(Rules{}, w)
	n := c.Pick(im, 1)
	traced, hooks := picked(im)
	if n.Seen != 0 || len(traced) != 0 || !slices.Equal(hooks, []string{"name"}) || len(w.told) != 0 || len(c.Names()) != 0 {
		t.Errorf("%+v: %q, hooks %q, told %q, names %q", n, traced, hooks, w.told, c.Names())
	}
}
