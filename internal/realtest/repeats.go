package realtest

import (
	"os"
	"strconv"
	"testing"
)

// Repeats is how often a test does what may go wrong at some moments only: n times, or as often as CALLREEL_CYCLES in the environment
// says. n is what every change can wait for; who looks for a rare moment asks for hundreds.
func Repeats(t testing.TB, n int) int {
	t.Helper()
	more := os.Getenv("CALLREEL_CYCLES")
	if more == "" {
		return n
	}
	n, err := strconv.Atoi(more)
	if err != nil || n < 1 {
		t.Fatalf("CALLREEL_CYCLES is %q, which is no number of cycles", more)
	}
	return n
}
