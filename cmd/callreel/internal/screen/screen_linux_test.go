package screen

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// A page may panic: the terminal is as it was, and says why.
func TestPanicGivesTheTerminalBack(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", "-test.run=TestPageThatPanics")
	cmd.Env = append(os.Environ(), "CALLREEL_TEST_PANIC=1")
	tty := realtest.OnTerminal(t, 80, 24, cmd)
	if code := tty.Code(); code != 2 {
		t.Errorf("code %d", code)
	}
	s := tty.WaitText("panic: the page is wrong")
	if s.Alternate || s.Hidden || s.NoWrap || !tty.Cooked() || !strings.Contains(tty.Written(), "a page") {
		t.Errorf("%+v, cooked %v", s, tty.Cooked())
	}
}

func TestPageThatPanics(t *testing.T) {
	if os.Getenv("CALLREEL_TEST_PANIC") == "" {
		t.Skip("it is the program of another test")
	}
	s, err := Open(os.Stdin, os.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Draw([]string{"a page"})
	for {
		s.mu.Lock()
		written := s.entered && s.pending == ""
		s.mu.Unlock()
		if written {
			panic("the page is wrong")
		}
	}
}

// Behind a line that is as wide as the terminal the cursor is still on its last character.
func TestLinesAsWideAsTheTerminalAreShownWhole(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", "-test.run=TestPageThatIsFull")
	cmd.Env = append(os.Environ(), "CALLREEL_TEST_FULL=1")
	tty := realtest.OnTerminal(t, 10, 3, cmd)
	want := strings.Join(fullPage, "\n") + "\n"
	tty.Wait("page in the place of another", func(s realtest.Screen) bool { return s.String() == want })
	if tty.Type("q"); tty.Code() != 0 {
		t.Errorf("code %d", tty.Code())
	}
}

var fullPage = []string{"0123456789", "short", "abcdefghij"}

func TestPageThatIsFull(t *testing.T) {
	if os.Getenv("CALLREEL_TEST_FULL") == "" {
		t.Skip("it is the program of another test")
	}
	s, err := Open(os.Stdin, os.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Draw([]string{"another", "longer than", "x"})
	s.Draw(fullPage)
	<-s.Keys()
}

// A terminal that takes nothing, as one whose window hangs, doesn't keep the program.
func TestTerminalThatTakesNothingIsLeft(t *testing.T) {
	t.Parallel()
	master, slave := realtest.Pty(t)
	s, err := Open(slave, slave)
	if err != nil {
		t.Fatal(err)
	}
	if realtest.Cooked(t, master) {
		t.Error("the terminal isn't raw")
	}
	s.Draw([]string{strings.Repeat("much", 1<<20)})
	for begun := false; !begun; {
		s.mu.Lock()
		begun = s.entered && s.pending == ""
		s.mu.Unlock()
	}
	s.Close()
	s.Close()
	if !s.Stuck() || !realtest.Cooked(t, master) {
		t.Errorf("stuck %v, cooked %v", s.Stuck(), realtest.Cooked(t, master))
	}
	s.Draw([]string{"more"}) // of no effect
}
