package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/symbols/server"
	"github.com/callreel/callreel/symbols/server/storage"
)

func newSymbolsPrune() *cobra.Command {
	var f struct {
		age    age
		size   size
		dryRun bool
		json   bool
	}
	c := &cobra.Command{
		Use:   "prune STORE [--max-age AGE] [--max-size SIZE]",
		Short: "Remove old symbols from a store",
		Long: `Prune removes from STORE, a folder or s3://BUCKET/PREFIX, the symbols of IDs that nothing was put for in AGE, and the oldest
until no more than SIZE is left. All files of an ID go together. Servers may be serving the store.`,
		Example: `  callreel symbols prune s3://symbols/prod --max-age 180d --max-size 500G
  callreel symbols prune ./store --max-age 30d --dry-run`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("callreel symbols prune: give one STORE: a folder or s3://BUCKET/PREFIX; see callreel symbols prune --help")
			}
			if f.age == 0 && f.size == 0 {
				return usageError("callreel symbols prune: give --max-age, --max-size or both")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := untilSignal(c.Context())
			defer stop()
			if !strings.Contains(args[0], "://") {
				if _, err := os.Stat(args[0]); err != nil {
					return fmt.Errorf("callreel symbols prune: %w", err)
				}
			}
			s, err := storage.Open(args[0], os.TempDir())
			if err != nil {
				return err
			}
			p, err := server.Prune(ctx, s, server.PruneOptions{MaxAge: time.Duration(f.age), MaxSize: int64(f.size), DryRun: f.dryRun})
			if err != nil {
				return err
			}
			if f.json {
				return writeJSON(c.OutOrStdout(), p)
			}
			verb := "removed"
			if f.dryRun {
				verb = "would be removed"
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s, %s of %s %s; %s of %s left\n", things(uint64(p.Files), "file"), bytesText(p.Bytes), things(uint64(p.IDs), "ID"), verb,
				bytesText(p.LeftBytes), things(uint64(p.LeftIDs), "ID"))
			return err
		},
	}
	fl := c.Flags()
	fl.Var(&f.age, "max-age", "remove what is older, such as 90d or 12h")
	fl.Var(&f.size, "max-size", "remove the oldest until no more is left")
	fl.BoolVar(&f.dryRun, "dry-run", false, "only say what would be removed")
	fl.BoolVar(&f.json, "json", false, "write what was removed, as JSON")
	return c
}

// age is a flag that takes a duration, also in days.
type age time.Duration

func (a *age) String() string {
	if *a == 0 {
		return ""
	}
	return time.Duration(*a).String()
}

func (a *age) Type() string { return "AGE" }

// Set reads a number of days, "90d", or a duration as Go has it.
func (a *age) Set(text string) error {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		const day, most = 24 * time.Hour, 100_000
		var n uint64
		if n, err = strconv.ParseUint(days, 10, 32); n > most {
			err = strconv.ErrRange
		}
		d = time.Duration(n) * day
	}
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is not an age: want days such as 90d, or 12h30m", text)
	}
	*a = age(d)
	return nil
}
