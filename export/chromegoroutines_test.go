package export

import (
	"testing"

	"github.com/callreel/callreel/reel"
)

// Goroutines have lanes of their own whatever threads they ran on, and so have the threads.
func TestChromeGivesEachGoroutineALane(t *testing.T) {
	const inner = base - 64
	f := recordAs(t, reel.Header{Goroutines: true}, []string{"a", "b", "schedule"}, func(w *reel.Writer) {
		tw := appendTo(t, w, reel.Thread{TID: 5, Name: "prog"},
			reel.Entry(1001, base, 3), reel.Switch(1010, 7), reel.Entry(1011, base, 1), reel.Entry(1012, inner, 2), // 7 goes on elsewhere
			reel.Switch(1030, 0), reel.Exit(1031, base, 3), reel.Switch(1040, 8), reel.Entry(1041, base, 1))
		if err := tw.Dropped(2, 2, 1045); err != nil {
			t.Fatal(err)
		}
		appendTo(t, w, reel.Thread{TID: 6, Name: "prog"},
			reel.Switch(1005, 8), reel.Entry(1006, base, 2), reel.Exit(1007, base, 2), // 8 has nothing open
			reel.Switch(1035, 7), reel.Exit(1036, inner, 2), reel.Exit(1037, base, 1))
	})
	check(t, lines(export(t, f, Options{})), []string{
		"M 0 process_name 0 [name:prog]",
		"M 5 thread_name 0 [name:prog]", "B 5 schedule 0.001",
		"M 4194305 thread_name 0 [name:goroutine 8]", "B 4194305 b 0.006", "E 4194305 b 0.007",
		"M 4194306 thread_name 0 [name:goroutine 7]", "B 4194306 a 0.011", "B 4194306 b 0.012",
		"M 4194307 thread_name 0 [name:prog (5): goroutines]", "X 4194307 goroutine 7 0.011",
		"E 5 schedule 0.031",
		"M 4194308 thread_name 0 [name:prog (6): goroutines]", "X 4194308 goroutine 8 0.006",
		"E 4194306 b 0.036", "E 4194306 a 0.037",
		"B 4194305 a 0.041",
		"i 5 events dropped: the ring was full 0.045 [entries:2 exits:2]",
		"X 4194307 goroutine 8 0.041", "s 4194308 goroutine 0.006", "f 4194307 goroutine 0.041",
		"X 4194308 goroutine 7 0.036", "s 4194307 goroutine 0.011", "f 4194308 goroutine 0.036",
		"E 4194305 a 0.042 [end:unfinished]", "i 4194305 calls open when the thread or the recording ended 0.043 [calls:1]",
	})
}
