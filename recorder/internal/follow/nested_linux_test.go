package follow

import (
	"os/exec"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/target"
)

// Who asks from a namespace of its own is found below the family, whatever else there is on the machine, and again at once.
func TestWhoIsInANamespaceOfItsOwnIsFoundBelowTheFamily(t *testing.T) {
	realtest.Need(t, realtest.Superuser)
	c := realtest.StartCommand(t, exec.Command("unshare", "-pf", "sh", "-c", "(echo ready; read line); true"))
	c.WaitLine("ready")
	p, err := process.Open(c.Pid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	f := &Family{target: &target.Target{Process: p}, sameNS: true, inner: p.Pid(), members: map[int]*member{},
		kin: &kin{refused: map[int]uint64{}}}
	never := pace{next: time.Now().Add(time.Hour)}
	f.nested.all = never
	for _, id := range []int{1, 2, 1} {
		pid, who, v := f.find(id)
		if v != related {
			t.Fatalf("ID %d is %v's", id, v)
		}
		if st, err := process.StatusOf(pid, pid); err != nil || len(st.NSPIDs) != 2 || st.NSPIDs[1] != id || who.Pid() != pid {
			t.Errorf("ID %d is process %d's: %+v, %v", id, pid, st.NSPIDs, err)
		}
		who.Close()
		if id == 2 {
			f.nested.below = never
		}
	}
	if _, _, v := f.find(3); v == related {
		t.Error("somebody is found by an ID that nobody has")
	}
	other := nested{known: map[int]int{1: 1, 2: p.Pid()}}
	for id := range other.known {
		if who := other.is(other.known[id], id, f); who != nil {
			t.Errorf("process %d is taken for one with ID %d in a namespace of its own", who.Pid(), id)
		}
	}
	c.Go()
	c.Wait()
}
