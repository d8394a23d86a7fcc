package scheduling

import (
	"testing"
	"time"
)

// Thread IDs are used again. Which thread a word is of goes by its time.
func TestWordsGoToWhoHadTheIDThen(t *testing.T) {
	l := newLives()
	w := who{1, 2}
	first := l.at(w, 100)
	if l.at(w, 50) != first || l.at(w, 150) != first {
		t.Error("one thread became two")
	}
	l.end(first, 200, time.Now())
	second := l.at(w, 300)
	if second == first || l.at(w, 200) != first || l.at(w, 201) != second || l.latest(w) != second {
		t.Error("what came after the end is not another thread's")
	}
	// Calls tell of a thread before the scheduler's words do that the one before has ended.
	third := l.add(w, 500)
	l.end(second, 400, time.Now())
	if l.at(w, 390) != second || l.at(w, 450) != third || l.at(w, 600) != third || third.began != 450 {
		t.Errorf("a thread that has called has began at %d, and is not met again", third.began)
	}
}

func TestThreadsThatHaveEndedAreForgotten(t *testing.T) {
	l := newLives()
	now := time.Now()
	for tid := range 10 {
		l.end(l.at(who{1, tid}, 100), 200, now.Add(time.Duration(tid)*time.Second))
	}
	needed := 4
	l.forget(now.Add(endedTime+6*time.Second), func(k *life) bool { return k.tid < needed })
	if len(l.by) != 10-needed || len(l.over) != 10-needed {
		t.Errorf("%d threads are known, %d of which have ended", len(l.by), len(l.over))
	}
	// One that goes by an ID that is used again stays.
	k := l.add(who{1, 9}, 201)
	l.forget(now.Add(time.Hour), func(*life) bool { return true })
	if len(l.by) != 1 || l.latest(who{1, 9}) != k || len(l.over) != 0 {
		t.Errorf("%d threads are known", len(l.by))
	}
}
