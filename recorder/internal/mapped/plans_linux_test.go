package mapped

import (
	"errors"
	"os"
	"testing"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/plan"
)

// Programs can be made without number; what isn't used is forgotten, and what is stays.
func TestPlansOfProgramsWithoutNumberAreBounded(t *testing.T) {
	var c PlanCache
	fill := func(functions int) func(p *sharedPlan) error {
		return func(p *sharedPlan) (err error) {
			p.object, err = object.Open("/proc/self/exe")
			p.plan = make([]plan.Function, functions)
			return err
		}
	}
	held, err := c.of(planKey{inode: 1}, fill(10))
	if err != nil {
		t.Fatal(err)
	}
	descriptors := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	before := descriptors()
	for i := range 10 * maxUnused {
		p, err := c.of(planKey{inode: uint64(2 + i)}, fill(maxIdle/maxUnused+i%100))
		if err != nil {
			t.Fatal(err)
		}
		again, err := c.of(planKey{inode: uint64(2 + i)}, func(*sharedPlan) error { return errors.New("planned twice") })
		if err != nil || again != p {
			t.Fatalf("another plan: %v", err)
		}
		c.release(p)
		c.release(again)
	}
	if len(c.plans) > maxUnused+1 || len(c.unused) > maxUnused || c.idle > maxIdle || descriptors() > before+2*maxUnused {
		t.Errorf("%d plans, %d unused of %d functions, %d descriptors", len(c.plans), len(c.unused), c.idle, descriptors()-before)
	}
	if p, err := c.of(planKey{inode: 1}, func(*sharedPlan) error { return errors.New("planned twice") }); err != nil || p != held {
		t.Errorf("a plan in use was forgotten: %v", err)
	}
	if _, err := c.of(planKey{inode: 7 << 40}, func(*sharedPlan) error { return errors.ErrUnsupported }); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("error %v", err)
	}
	if c.plans[planKey{inode: 7 << 40}] != nil {
		t.Error("a plan that came to nothing is kept")
	}
	c.Close()
}
