package main

import (
	"bufio"
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/internal/safejson"
)

func newCFIDump() *cobra.Command {
	var l cfiLookup
	c := &cobra.Command{
		Use:   "dump FILE [ADDR…]",
		Short: "Print the rows of all FDEs, or of those that describe link addresses",
		Long: `Dump prints for each range of code where the caller's frame is (the CFA) and where its registers are: rsp+16 is a
value, [cfa-16] is what is at an address. Compact unwind information of Mach-O has one row a function. If nothing
describes an address, dump says so and ends with code 1.`,
		Example: "  callreel cfi dump /usr/lib/x86_64-linux-gnu/libc.so.6 0x26554",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 {
				return usageError("callreel cfi dump: give a FILE; see callreel cfi dump --help")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			f, list, err := l.open(args)
			if err != nil {
				return err
			}
			defer f.image.Close()
			d := dumper{f: f, w: bufio.NewWriter(c.OutOrStdout()), json: l.json}
			if err := d.dump(list); err != nil {
				return err
			}
			return d.w.Flush()
		},
	}
	l.add(c, "write JSON, one object a range of code")
	return c
}

// dumper writes rows.
type dumper struct {
	f       *cfiFile
	w       *bufio.Writer
	json    bool
	machine cfi.Machine
}

// dumpedRow is a row as --json has it, in an object {"section", "start", "end", "rows", "reason"} for each range of code.
type dumpedRow struct {
	Address string `json:"address"`
	rowText
}

// dump writes all rows, or those of the code around addresses.
func (d *dumper) dump(list []uint64) error {
	described := make([]bool, len(list))
	wanted := func(start, end uint64) bool {
		any := len(list) == 0
		for k, at := range list {
			if at >= start && at < end {
				described[k], any = true, true
			}
		}
		return any
	}
	for _, t := range d.f.info.Tables() {
		for k := range t.FDEs() {
			if f := &t.FDEs()[k]; wanted(f.Start, f.End) {
				if err := d.fde(t.Section(), f); err != nil {
					return err
				}
			}
		}
		for _, damage := range t.Damage() {
			if !d.json {
				fmt.Fprintf(d.w, "%s: record at %#x: %s\n", t.Section(), damage.Offset, printable(damage.Err.Error()))
			}
		}
	}
	if d.f.info.Compact != nil {
		var failed error
		err := d.f.info.Compact.Entries(func(e cfi.CompactEntry) bool {
			if wanted(e.Start, e.End) {
				failed = d.compact(&e)
			}
			return failed == nil
		})
		if err = cmp.Or(failed, err); err != nil {
			return err
		}
	}
	return d.missing(list, described)
}

// missing says which addresses nothing describes, and makes the verb fail if there are any.
func (d *dumper) missing(list []uint64, described []bool) error {
	var err error
	for k, at := range list {
		if described[k] {
			continue
		}
		err = &exitError{code: exitFailed}
		if d.json {
			fmt.Fprintf(d.w, `{"section":"","start":"%#x","end":"%#x","rows":[],"reason":%q}`+"\n", at, at, cfi.ErrNotDescribed)
		} else {
			fmt.Fprintf(d.w, "%#x: %s\n", at, cfi.ErrNotDescribed)
		}
	}
	return cmp.Or(d.w.Flush(), err)
}

// fde writes the rows of an FDE. They are written as they come: a damaged program can make very many.
func (d *dumper) fde(section string, f *cfi.FDE) error {
	return d.write(section, f.Start, f.End, func(row func(*cfi.Row) bool) error { return d.machine.Rows(f, row) })
}

// compact writes an entry of __unwind_info. Those that refer to __eh_frame were written with that.
func (d *dumper) compact(e *cfi.CompactEntry) error {
	if _, escape := d.f.info.Compact.DWARF(e); escape || e.Encoding == 0 {
		return nil
	}
	return d.write("__unwind_info", e.Start, e.End, func(row func(*cfi.Row) bool) error {
		r, err := d.f.info.Compact.Row(e)
		if err == nil {
			row(&r)
		}
		return err
	})
}

// write writes a range of code and its rows. Damage of the rows is written behind them; the error is that of the output.
func (d *dumper) write(section string, start, end uint64, rows func(func(*cfi.Row) bool) error) error {
	if d.json {
		return d.writeJSON(section, start, end, rows)
	}
	fmt.Fprintf(d.w, "%s %#x..%#x\n", section, start, end)
	var failed error
	damage := rows(func(r *cfi.Row) bool {
		_, failed = fmt.Fprintf(d.w, "  %#x  %s\n", r.Start, r.Format(d.f.info.Registers.Name))
		return failed == nil
	})
	if damage != nil && failed == nil {
		_, failed = fmt.Fprintf(d.w, "  %s\n", printable(damage.Error()))
	}
	return failed
}

func (d *dumper) writeJSON(section string, start, end uint64, rows func(func(*cfi.Row) bool) error) error {
	fmt.Fprintf(d.w, `{"section":%q,"start":"%#x","end":"%#x","rows":[`, section, start, end)
	var failed error
	count := 0
	damage := rows(func(r *cfi.Row) bool {
		var text []byte
		if text, failed = safejson.Marshal(dumpedRow{address(r.Start), d.f.textOf(r)}); failed != nil {
			return false
		}
		if count++; count > 1 {
			d.w.WriteByte(',')
		}
		_, failed = d.w.Write(text)
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	d.w.WriteByte(']')
	if damage != nil {
		text, err := safejson.Marshal(damage.Error())
		if err != nil {
			return err
		}
		d.w.WriteString(`,"reason":`)
		d.w.Write(text)
	}
	_, err := d.w.WriteString("}\n")
	return err
}
