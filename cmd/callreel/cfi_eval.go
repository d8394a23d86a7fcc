package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/cfi"
)

func newCFIEval() *cobra.Command {
	var l cfiLookup
	c := &cobra.Command{
		Use:   "eval FILE ADDR…",
		Short: "Print the CFA and every register's rule at link addresses",
		Long: `Eval prints for each link address where the caller's frame is (the CFA) and where the caller's registers are: rsp+16 is
a value, [cfa-16] is what is at an address.`,
		Example: `  callreel cfi eval /usr/lib/x86_64-linux-gnu/libc.so.6 0x26554
  callreel cfi eval ./prog 0x401136 0x40113a --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usageError("callreel cfi eval: give a FILE and at least one ADDR; see callreel cfi eval --help")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			f, list, err := l.open(args)
			if err != nil {
				return err
			}
			defer f.image.Close()
			return f.eval(c.OutOrStdout(), list, l.json)
		},
	}
	l.add(c, "write JSON, one object an address")
	return c
}

// evaluated is what --json says of an address; the keys are promised.
type evaluated struct {
	Address string `json:"address"`
	*rowText
	Section string `json:"section,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// eval writes the rows of addresses. One that is not described, or whose row is damaged, is said so and makes the verb fail.
func (f *cfiFile) eval(w io.Writer, list []uint64, asJSON bool) error {
	b := bufio.NewWriter(w)
	var m cfi.Machine
	missing := 0
	for _, at := range list {
		row, section, err := f.info.RowAt(&m, at)
		e := evaluated{Address: address(at), Section: section}
		if err != nil {
			missing++
			if e.Reason = err.Error(); errors.Is(err, cfi.ErrNotDescribed) {
				e.Reason = cfi.ErrNotDescribed.Error()
			}
		} else {
			t := f.textOf(row)
			e.rowText = &t
		}
		switch {
		case asJSON:
			err = writeJSON(b, e)
		case err != nil:
			_, err = fmt.Fprintf(b, "%s: %s\n", e.Address, printable(e.Reason))
		default:
			_, err = fmt.Fprintf(b, "%s: %s\n", e.Address, row.Format(f.info.Registers.Name))
		}
		if err != nil {
			return err
		}
	}
	if err := b.Flush(); err != nil {
		return err
	}
	if missing > 0 {
		return &exitError{code: exitFailed}
	}
	return nil
}
