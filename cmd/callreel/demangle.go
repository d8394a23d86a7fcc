package main

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/demangle"
)

func newDemangle() *cobra.Command {
	var short, ada bool
	c := &cobra.Command{
		Use:   "demangle [NAME…]",
		Short: "Turn linkage names of C++, Rust, Swift, D, OCaml, Ada and Fortran into readable ones",
		Long: `Demangle takes names as arguments, or one a line from stdin, and writes one a line. Other names stay as they are.

Names of Ada's packages look like names that C programs have, too (uv__io_poll). So only those are taken for Ada's that
are surely its own, such as ada__text_io__put_line. --ada takes all names in that form for Ada's.`,
		Example: `  callreel demangle _ZNSt6vectorIiSaIiEE9push_backERKi
  nm lib.so | cut -d" " -f3 | callreel demangle --short`,
		RunE: func(c *cobra.Command, args []string) error {
			name := demangle.Name
			if short {
				name = demangle.Short
			}
			if other := name; ada {
				name = func(s string) string {
					if n := demangle.Ada(s); n != s {
						return n
					}
					return other(s)
				}
			}
			var in io.Reader = c.InOrStdin()
			if len(args) > 0 {
				in = strings.NewReader(strings.Join(args, "\n") + "\n")
			}
			return demangleLines(in, c.OutOrStdout(), name)
		},
	}
	c.Flags().BoolVar(&ada, "ada", false, "take names in GNAT's form for Ada's, as c++filt -s gnat does")
	c.Flags().BoolVar(&short, "short", false, "leave out parameters and template arguments")
	return c
}

// demangleLines is the filter. What has come is answered before more is waited for, so that a program can talk to it.
func demangleLines(r io.Reader, w io.Writer, name func(string) string) error {
	const longest = 64 << 10 // a longer line is no name, and goes through in pieces
	in := bufio.NewReaderSize(r, longest)
	out := bufio.NewWriterSize(w, longest)
	inside := false // a line that is going through in pieces
	for {
		line, err := in.ReadSlice('\n')
		text, newline := strings.CutSuffix(string(line), "\n")
		if whole := !errors.Is(err, bufio.ErrBufferFull); whole && !inside {
			text = name(text)
		}
		inside = errors.Is(err, bufio.ErrBufferFull)
		out.WriteString(text)
		if newline {
			out.WriteByte('\n')
		}
		if err != nil && !inside {
			if ferr := out.Flush(); ferr != nil || errors.Is(err, io.EOF) {
				return ferr
			}
			return err
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}
