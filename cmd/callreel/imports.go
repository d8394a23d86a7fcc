package main

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/recorder"
)

func newImports() *cobra.Command {
	var pid processID
	q := recorder.ImportQuery{}
	var memory memoryLimit
	var asJSON bool
	c := &cobra.Command{
		Use:   "imports -p PID",
		Short: "List where each image's imported functions lead, and which were rebound",
		Long: `Imports lists the slots of a process for functions: the entries of each image's global offset table (GOT), by which it
calls the functions of others. Of each it says where it leads and whether the dynamic linker would have led it there,
by the symbols, versions and search order of the images that are loaded. Nothing is stopped or changed.

  bound        the definition that the rules lead to; of an IFUNC any function of its library
  interposed   a definition that comes before that of the libraries which the image needs (LD_PRELOAD, the program)
  lazy         not bound yet: the first call asks the linker
  undefined    a weak symbol that nothing defines
  unrelocated  the loader hasn't come to it
  rebound      somewhere else: another image, or memory that is no image's; it says which
  unreadable   the slot could not be read`,
		Example: `  callreel imports -p 1234 -m nginx
  callreel imports -p 1234 --verdict rebound
  callreel imports -p 1234 --name 'libssl.so*:SSL_*' --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if pid == 0 || len(args) > 0 {
				return usageError("callreel imports: give -p PID, and nothing else; see callreel imports --help")
			}
			for _, g := range q.Names {
				if _, err := path.Match(g, ""); err != nil {
					return usageError("callreel imports: --name %s: not a glob", g)
				}
			}
			for _, v := range q.Verdicts {
				if !slices.Contains(recorder.ImportVerdicts(), v) {
					return usageError("callreel imports: --verdict %s: use %s", v, strings.Join(recorder.ImportVerdicts(), ", "))
				}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			q.Memory = memory.limit()
			list, err := recorder.ImportsOfProcess(c.Context(), int(pid), q)
			if err != nil && len(list) == 0 {
				return err
			}
			write := importsText
			if asJSON {
				write = importsJSON
			}
			if werr := write(c.OutOrStdout(), list); werr != nil {
				return werr
			}
			return err
		},
	}
	fl := c.Flags()
	addPID(fl, &pid, "the process to look at, by its `PID`")
	fl.StringArrayVarP(&q.Modules, "module", "m", nil, "only the slots of this `MODULE`: the base name of its file, or a glob (repeatable)")
	fl.StringArrayVar(&q.Names, "name", nil, "only functions that match this `GLOB`: FUNC, or LIB:FUNC with the library (repeatable)")
	fl.StringArrayVar(&q.Verdicts, "verdict", nil, "`VERDICT`: bound, interposed, lazy, undefined, unrelocated, rebound, unreadable (repeatable)")
	fl.BoolVar(&q.Words, "words", false, "pointers to functions in data, too, which relocations fill (tables of virtual functions)")
	memory.add(fl)
	fl.BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// listedImport is a slot as --json has it; the keys are promised.
type listedImport struct {
	Module          string `json:"module"`
	Symbol          string `json:"symbol"`
	Version         string `json:"version,omitempty"`
	Kind            string `json:"kind"`
	Address         string `json:"address"`
	Value           string `json:"value"`
	Verdict         string `json:"verdict"`
	To              string `json:"to"`
	Function        string `json:"function,omitempty"`
	Offset          uint64 `json:"offset,omitempty"`
	Expected        string `json:"expected"`
	ExpectedAddress string `json:"expected_address,omitempty"`
}

func importsJSON(w io.Writer, list []recorder.ImportSlot) error {
	b := bufio.NewWriter(w)
	b.WriteByte('{')
	err := jsonList(b, "imports", len(list), func(i int) any {
		s := &list[i]
		x := listedImport{Module: s.Module, Symbol: s.Symbol, Version: s.Version, Kind: s.Kind, Address: fmt.Sprintf("%#x", s.Address),
			Value: fmt.Sprintf("%#x", s.Value), Verdict: s.Verdict, To: s.To, Function: s.Function, Offset: s.Offset, Expected: s.Expected}
		if s.ExpectedAt != 0 {
			x.ExpectedAddress = fmt.Sprintf("%#x", s.ExpectedAt)
		}
		return x
	})
	if err != nil {
		return err
	}
	b.WriteString("\n}\n")
	return b.Flush()
}

func importsText(w io.Writer, list []recorder.ImportSlot) error {
	b := bufio.NewWriter(w)
	counts := map[string]int{}
	for i := range list {
		s := &list[i]
		counts[s.Verdict]++
		name := demangle.Name(s.Symbol)
		text := fmt.Sprintf("%#016x  %-11s %s: %s", s.Address, s.Verdict, printable(s.Module), printable(name))
		if s.Version != "" {
			text += "@" + printable(s.Version)
		}
		if s.Value != 0 {
			text += " -> " + printable(s.To)
			switch {
			case s.Function != "" && (s.Function != s.Symbol || s.Offset != 0):
				text += "!" + printable(demangle.Name(s.Function))
				if s.Offset != 0 {
					text += fmt.Sprintf("+%#x", s.Offset)
				}
			case s.Function == "" && s.Verdict == "rebound":
				text += fmt.Sprintf(" at %#x", s.Value)
			}
		}
		if s.Verdict == "rebound" || s.Verdict == "lazy" {
			if s.Expected != "" {
				text += ", expected " + printable(s.Expected)
			} else {
				text += ", which nothing defines"
			}
		}
		fmt.Fprintln(b, text)
	}
	var sums []string
	for _, v := range recorder.ImportVerdicts() {
		if n := counts[v]; n > 0 {
			sums = append(sums, fmt.Sprintf("%d %s", n, v))
		}
	}
	if len(list) == 0 {
		sums = []string{"none"}
	}
	fmt.Fprintf(b, "%s: %s\n", things(uint64(len(list)), "slot"), strings.Join(sums, ", "))
	return b.Flush()
}
