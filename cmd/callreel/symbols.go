package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newSymbols() *cobra.Command {
	c := &cobra.Command{
		Use:   "symbols VERB",
		Short: "Compile symbol maps from DWARF, look addresses up, name reels, and serve symbols",
		Long: `Symbols compiles the DWARF and the symbol tables of an image into a symbol map. That is a small file that answers any
address at once, with its function, file, line and everything that was inlined there.`,
		Example: `  callreel symbols build /usr/lib/debug/vmlinux
  callreel symbols lookup vmlinux.symmap ffffffff81000110`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("callreel symbols: there is no verb %q, only attach, build, info, lookup, prune, push and serve",
					args[0])
			}
			c.SetOut(c.ErrOrStderr())
			_ = c.Help() // to stderr, of whose failure nobody can be told
			return &exitError{code: exitUsage}
		},
	}
	c.Flags().BoolP("help", "h", false, "help for symbols")
	c.AddCommand(newSymbolsBuild(), newSymbolsLookup(), newSymbolsInfo(), newSymbolsAttach(), newSymbolsServe(),
		newSymbolsPush(), newSymbolsPrune())
	for _, verb := range c.Commands() {
		verb.DisableFlagsInUseLine = true
	}
	return c
}

// addArch adds --arch.
func addArch(c *cobra.Command, arch *string) {
	c.Flags().StringVar(arch, "arch", "", "read this `ARCH` of a fat Mach-O file: arm64, arm64e, x86_64 …")
}

// addDebugDirs adds --debug-dir.
func addDebugDirs(fl *pflag.FlagSet, dirs *[]string) {
	fl.StringArrayVar(dirs, "debug-dir", nil, "look for debug files below `DIR`, too (repeatable)")
}

// base is the last element of a path without its slashes at the end.
func base(path string) string {
	path = strings.TrimRight(path, "/")
	return path[strings.LastIndexByte(path, '/')+1:]
}
