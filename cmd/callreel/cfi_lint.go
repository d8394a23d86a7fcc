package main

import (
	"bufio"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/cfi/lint"
	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/internal/safejson"
)

func newCFILint() *cobra.Command {
	var asJSON bool
	var format, arch string
	var memory memoryLimit
	c := &cobra.Command{
		Use:   "lint FILE",
		Short: "Check call frame information against the code; exit code 1 on findings",
		Long: `Lint follows the code of every function (x86-64 and arm64) over all its paths. At every instruction and every return it compares
where the frame and the saved registers are with what the call frame information says. It also reports functions without
call frame information, FDEs that overlap or describe no code, and a wrong .eh_frame_hdr. Nothing is run. A function
without a symbol is named by the address at which its FDE begins. Addresses are those of the file.

Of other architectures only the tables are checked.

Exit code 0 means no findings, 1 means findings or a file that can't be read.`,
		Example: `  callreel cfi lint libcrypto.so.3
  callreel cfi lint libcrypto.so.3 --format sarif`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("callreel cfi lint: give one FILE; see callreel cfi lint --help")
			}
			if asJSON {
				format = "json"
			}
			switch format {
			case "text", "json", "sarif":
				return nil
			}
			return usageError("callreel cfi lint: there is no format %q; there are text, json and sarif", format)
		},
		RunE: func(c *cobra.Command, args []string) error {
			im, err := memory.opener().OpenArch(args[0], arch)
			if err != nil {
				return err
			}
			defer im.Close()
			result, err := lint.Check(im)
			if err != nil {
				return err
			}
			if err := writeLint(c.OutOrStdout(), args[0], format, result); err != nil {
				return err
			}
			if len(result.Findings) > 0 {
				return &exitError{code: exitFailed}
			}
			return nil
		},
	}
	fl := c.Flags()
	fl.BoolVar(&asJSON, "json", false, "write JSON, as --format json")
	fl.StringVar(&format, "format", "text", "the format: text, json or sarif")
	memory.add(fl)
	fl.StringVar(&arch, "arch", "", "the architecture to read from a fat Mach-O file: this `ARCH`")
	return c
}

// lintFinding is a finding as --json has it; the keys are promised.
type lintFinding struct {
	Kind      lint.Kind `json:"kind"`
	Function  string    `json:"function"`
	Address   string    `json:"address"`
	Says      string    `json:"says"`
	Truth     string    `json:"truth"`
	Directive string    `json:"directive"`
}

func writeLint(w io.Writer, path, format string, result *lint.Result) error {
	b := bufio.NewWriter(w)
	var err error
	switch format {
	case "json":
		err = lintJSON(b, path, result)
	case "sarif":
		err = lint.WriteSARIF(b, path, versionText(), result.Findings, demangle.Name)
	default:
		lintText(b, path, result)
	}
	if err != nil {
		return err
	}
	return b.Flush()
}

// lintJSON streams the findings behind what was read.
func lintJSON(b *bufio.Writer, path string, result *lint.Result) error {
	name, err := safejson.Marshal(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "{\"file\":%s,\"section\":%q,\"fdes\":%d,\"code_followed\":%t,\"synchronous\":%t,\n",
		name, result.Section, result.FDEs, result.CodeFollowed, result.Synchronous)
	err = jsonList(b, "findings", len(result.Findings), func(k int) any {
		f := &result.Findings[k]
		return lintFinding{f.Kind, f.Function, address(f.Address), f.Says, f.Truth, f.Directive}
	})
	b.WriteString("\n}\n")
	return err
}

// lintText writes a line for each finding, in the manner of compilers.
func lintText(b *bufio.Writer, path string, result *lint.Result) {
	for k := range result.Findings {
		findingText(b, path, &result.Findings[k])
	}
	fmt.Fprintf(b, "%s: %s in %s of %s", printable(path), things(uint64(len(result.Findings)), "finding"), things(uint64(result.FDEs), "FDE"), result.Section)
	if result.Synchronous {
		b.WriteString("; epilogues are left out throughout: the tables are exact at calls only")
	}
	if !result.CodeFollowed {
		b.WriteString("; the code was not followed, since it is neither x86-64 nor arm64")
	}
	b.WriteByte('\n')
}
