package arguments

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

const fortran = `
module shop
contains
subroutine price(n, x, k)
  integer, intent(in) :: n
  real(8), intent(inout) :: x
  integer, value :: k
  x = x*1.5d0 + n + k
end subroutine
end module
program main
  use shop
  real(8) :: x
  integer :: n
  x = 1
  n = command_argument_count()
  call price(n, x, 3)
  print *, x
end program
`

// Fortran passes arguments by reference, but DWARF gives them the types of what is referred to. Those with VALUE are what it says.
func TestFortransArgumentsAreBehindAddresses(t *testing.T) {
	realtest.Need(t, realtest.GFortran)
	for _, flags := range [][]string{{"-O0"}, {"-O1", "-fno-inline"}, {"-O2", "-fno-inline", "-gdwarf-4"}} {
		path := filepath.Join(t.TempDir(), "program")
		cmd := exec.Command(realtest.Tool(t, realtest.GFortran), slices.Concat(flags, []string{"-g", "-x", "f95", "-", "-o", path})...)
		cmd.Stdin = strings.NewReader(fortran)
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		im, err := object.Open(path)
		realtest.Must(t, err)
		defer im.Close()
		d, err := Open(t.Context(), im, &object.DebugSearch{})
		realtest.Must(t, err)
		defer d.Close()
		for _, fn := range functions(t, im, "price") {
			s, err := d.Function(fn.Addr, []string{fn.Name}, false)
			realtest.Must(t, err)
			var kinds []string
			for _, p := range s.params {
				kinds = append(kinds, fmt.Sprint(p.name, " ", p.t.Kind == KindReference))
			}
			if !slices.Equal(kinds, []string{"n true", "x true", "k false"}) {
				t.Errorf("%v: %v", flags, kinds)
			}
			// And the value's register is that of the third argument, since none of the others takes one for numbers.
			p, err := s.Entry(true, nil)
			if err != nil || len(p.Arguments) != 3 || !strings.Contains(p.Arguments[1].Type, "real(kind=8)") {
				t.Errorf("%v: %v, %v", flags, p, err)
			}
		}
	}
}
