package choose

import (
	"github.com/callreel/callreel/recorder/internal/hugepage"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Picked counts what Pick has done: how many functions were chosen, how many of them are recorded, and why the others aren't.
type Picked struct {
	Seen, Traced int
	Refused      map[string]int // by reason
}

// Pick takes the functions of an image that are chosen, with IDs from id on, and those that get hooks.
func (c *Chooser) Pick(im *mapped.Image, id uint32) Picked {
	n := Picked{Refused: map[string]int{}}
	im.First = id
	if !im.Unchosen {
		im.Traced = hugepage.Make[stub.Probe](len(im.Plan))[:0]
	}
	for i := range im.Plan {
		f := &im.Plan[i]
		names := c.spellings(f.Names())
		wanters := c.asking(names)
		inside := !im.Unchosen && c.inside.match(names)
		if im.Unchosen || !c.function(names, f.Size) && len(wanters) == 0 && !inside {
			im.Hooked = append(im.Hooked, c.hookOf(im, f)...)
			continue
		}
		n.Seen++
		if f.Tier == plan.TierNone {
			n.Refused[f.Reason.String()]++
			for _, w := range wanters {
				w.Refuse(names, f.Reason.String())
			}
			im.Hooked = append(im.Hooked, c.hookOf(im, f)...)
			continue
		}
		for _, w := range wanters {
			w.Take(id, names)
		}
		im.Traced = append(im.Traced, stub.Probe{Function: f, Image: im.Probe, ID: id, Slide: im.Slide, Inside: inside})
		id++
	}
	n.Traced = len(im.Traced)
	im.Unchosen = n.Traced == 0
	return n
}

// Look says, without taking any, whether Pick would find functions of an image that are chosen, and whether wanters ask for one.
func (c *Chooser) Look(im *mapped.Image) (chosen, asked bool) {
	for i := range im.Plan {
		f := &im.Plan[i]
		names := c.spellings(f.Names())
		asked = asked || len(c.asking(names)) > 0
		chosen = chosen || asked || c.function(names, f.Size) || c.inside.match(names)
		if asked || chosen && len(c.wanters) == 0 {
			break
		}
	}
	return chosen, asked
}

// hookOf is the hook at a function that isn't recorded, if it gets one.
func (c *Chooser) hookOf(im *mapped.Image, f *plan.Function) []stub.Probe {
	if len(f.HookSites()) == 0 || f.Hook == plan.HookExec && !c.rules.Exec {
		return nil
	}
	return []stub.Probe{{Function: f, Image: im.Probe, Slide: im.Slide}}
}
