package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/object"
)

func newCFI() *cobra.Command {
	c := &cobra.Command{
		Use:   "cfi dump|eval|lint FILE, cfi step -- CMD",
		Short: "Show call frame information, and check it against the code and its calls",
		Long: `CFI reads the call frame information of an ELF or Mach-O file: .eh_frame, .debug_frame, __eh_frame and compact
unwind information. Debuggers, profilers and exceptions walk stacks by it.`,
		Example: `  callreel cfi lint ./libfast.so
  callreel cfi eval ./libfast.so 0x1136`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("callreel cfi: there is no %q; there are dump, eval, lint and step", args[0])
			}
			return usageError("callreel cfi: say dump, eval, lint or step; see callreel cfi --help")
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	c.AddCommand(newCFIDump(), newCFIEval(), newCFILint(), newCFIStep())
	for _, sub := range c.Commands() {
		sub.DisableFlagsInUseLine = true
	}
	return c
}

// cfiFile is a file whose call frame information was asked for.
type cfiFile struct {
	image *object.Image
	info  *cfi.Info
}

// openCFI opens a file's tables.
func openCFI(path, arch string, memory memoryLimit) (*cfiFile, error) {
	im, err := memory.opener().OpenArch(path, arch)
	if err != nil {
		return nil, err
	}
	info, err := cfi.ReadImage(im)
	if err != nil {
		im.Close()
		return nil, err
	}
	return &cfiFile{im, info}, nil
}

// addresses reads link addresses: hexadecimal with 0x, or without where they cannot be decimal.
func addresses(words []string) ([]uint64, error) {
	var list []uint64
	for _, word := range words {
		v, err := strconv.ParseUint(word, 0, 64)
		if err != nil {
			v, err = strconv.ParseUint(strings.TrimPrefix(word, "0x"), 16, 64)
		}
		if err != nil {
			return nil, usageError("callreel cfi: %q is not an address", word)
		}
		list = append(list, v)
	}
	return list, nil
}

// address writes an address as JSON has it.
func address(v uint64) string { return fmt.Sprintf("%#x", v) }

// rowText is a row's rules as JSON has them.
type rowText struct {
	CFA       string            `json:"cfa"`
	Registers map[string]string `json:"registers"`
}

// textOf writes a row's rules, those included that hold without being said: registers that calls keep are the same.
func (f *cfiFile) textOf(r *cfi.Row) rowText {
	regs := f.info.Registers
	t := rowText{r.CFA.Format(regs.Name), map[string]string{}}
	for _, reg := range regs.CalleeSaved {
		t.Registers[regs.Name(reg)] = "same"
	}
	for k := range r.Regs {
		rule := &r.Regs[k]
		name := regs.Name(rule.Reg)
		if rule.Reg == r.RAReg {
			name = "ra"
		}
		t.Registers[name] = rule.Format(regs.Name)
	}
	if _, ok := t.Registers["ra"]; !ok {
		t.Registers["ra"] = regs.Name(r.RAReg)
	}
	return t
}

// cfiLookup is what the verbs that look addresses up in a file have in common.
type cfiLookup struct {
	json   bool
	arch   string
	memory memoryLimit
}

func (l *cfiLookup) add(c *cobra.Command, jsonUsage string) {
	c.Flags().BoolVar(&l.json, "json", false, jsonUsage)
	l.memory.add(c.Flags())
	c.Flags().StringVar(&l.arch, "arch", "", "the architecture to read from a fat Mach-O file: this `ARCH`")
}

// open opens the file that args begin with, and reads the addresses behind it.
func (l *cfiLookup) open(args []string) (*cfiFile, []uint64, error) {
	list, err := addresses(args[1:])
	if err != nil {
		return nil, nil, err
	}
	f, err := openCFI(args[0], l.arch, l.memory)
	return f, list, err
}
