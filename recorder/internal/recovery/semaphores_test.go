package recovery

import "testing"

// What is noted of semaphores is read by others, and a record stays whole when it changes.
func TestWhatIsDoneToSemaphoresIsRead(t *testing.T) {
	j := Journal{Space: make([]byte, 4096)}
	r := Record{Semaphores: []Semaphore{{Addr: 0x1000, Site: 0x2000}, {Addr: 0x1002, Site: 0x2000}}}
	if err := j.Add(&r); err != nil {
		t.Fatal(err)
	}
	for _, s := range []State{Untouched, GoingUp.Changing(7), Up, GoingDown.Changing(8), Untouched} {
		r.Semaphores[1].Note(s)
		got, err := readAll(j.Space)
		if err != nil || len(got.Semaphores) != 2 {
			t.Fatalf("%+v, %v", got, err)
		}
		if a, b := got.Semaphores[0].State(), got.Semaphores[1].State(); a != Untouched || b != s || b.Is() != s.Is() || b.Before() != s.Before() {
			t.Errorf("%#x and %#x, not %#x", a, b, s)
		}
	}
}

// Whoever finds a recorder dead at any instant takes away just what it has added, whatever others have.
func TestOnlyWhatWasAddedIsTakenAway(t *testing.T) {
	for _, c := range []struct {
		state State
		now   uint16
		ours  bool
	}{
		{Untouched, 5, false},
		{GoingUp.Changing(0), 0, false}, // it has not been written yet
		{GoingUp.Changing(0), 1, true},
		{GoingUp.Changing(3), 3, false},
		{GoingUp.Changing(3), 4, true},
		{Up, 1, true},
		{Up, 9, true},
		{Up, 0, false}, // somebody else has set it
		{GoingDown.Changing(1), 1, true},
		{GoingDown.Changing(1), 0, false}, // it is done
		{GoingDown.Changing(4), 3, false},
		{GoingDown.Changing(0), 0, false},
	} {
		if x := (Semaphore{noted: c.state}); x.Added(c.now) != c.ours {
			t.Errorf("%#x and %d: %v", c.state, c.now, !c.ours)
		}
	}
}
