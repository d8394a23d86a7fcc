package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// config is what the flags say, and where things are.
type config struct {
	rounds   int
	calls    int64          // of leaf in one measurement
	requests int            // GETs in one measurement
	callreel string         // path of the binary
	ring     string         // for --ring; "" leaves callreel's default
	source   string         // bench/target
	dir      string         // for everything that is made, removed at the end
	input    string         // part of the names of what is to be measured, of some parts
	billion  bool           // view is measured on a billion events, too
	keep     bool           // programs that were harmed are not ended
	plants   *regexp.Regexp // names of the planted causes that why is asked about; nil for all
	spall    string         // a folder with spall.h; "" for none
	tracy    string         // a folder with TracyClient.cpp; "" for none
	reels    string         // a folder for what was recorded of them; "" for nowhere
}

// A part measures some of the rows. It returns rows for what it could not
// measure, too.
type part struct {
	name string
	run  func(context.Context, config) []row
}

var parts = []part{
	{"leaf", measureLeaf},
	{"less", measureFilters},
	{"armed", measureArmed},
	{"past", measurePast},
	{"budget", measureBudget},
	{"arguments", measureArguments},
	{"throws", measureThrows},
	{"markers", measureMarkers},
	{"golang", measureGo},
	{"peers", measurePeers},
	{"redis", measureRedis},
	{"top", measureTop},
	{"stops", measureStops},
	{"lazy", measureLazy},
	{"drain", measureDrain},
	{"symbols", measureSymbols},
	{"stacks", measureStacks},
	{"sample", measureSample},
	{"server", measureServer},
	{"lint", measureLint},
	{"view", measureView},
	{"page", measurePage},
	{"viewers", measureViewers},
	{"exports", measureExports},
	{"why", measureWhy},
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func run() (err error) {
	var c config
	flag.IntVar(&c.rounds, "rounds", 5, "rounds; figures are their medians")
	flag.Int64Var(&c.calls, "calls", 1_000_000, "calls of leaf in one measurement")
	flag.IntVar(&c.requests, "requests", 100_000, "redis requests in one measurement")
	flag.StringVar(&c.callreel, "callreel", "bin/callreel", "the callreel to measure")
	flag.StringVar(&c.ring, "ring", "", "ring size for callreel record, such as 64M; empty for its default")
	only := flag.String("only", "", "comma-separated parts: leaf, less, arguments, armed, past, budget, throws, markers, golang, peers, redis, top, stops, lazy, drain, symbols, stacks, sample, server, lint, view, page, viewers, exports, why")
	flag.StringVar(&c.input, "input", "", "of budget (planted besides its programs), -soak-budget, symbols, lazy (steady, first, node, million), server (frames, clients, bucket, debuginfod) and programs, only those whose names have this in them")
	table := flag.Bool("programs", false, "record real programs at work, and print a table of them")
	soaking := flag.Duration("soak", 0, "let recorders come, go and die in programs at work for this time, and look for harm")
	always := flag.Duration("always", 0, "arm a recorder with a budget on redis for this time, in which one request in 100,000 is slow, and look at its dumps")
	budgets := flag.Duration("soak-budget", 0, "let recorders with a budget come, go and die in some programs whose load changes for this time, and look for harm")
	seed := flag.Uint64("seed", 0, "of what is random in -soak; 0 for a random one")
	made := flag.String("made", "", "of -soak and -programs, a folder of programs that were compiled before, for machines without their compilers")
	flag.BoolVar(&c.keep, "keep", false, "let programs that -soak has harmed live on, to be looked at")
	flag.BoolVar(&c.billion, "billion", false, "measure view and page on a reel of a billion events, too; it takes 5 GB of disk")
	plants := flag.String("plants", "", "of why, only the planted causes whose names match this regular expression")
	flag.StringVar(&c.reels, "reels", "", "keep what why was asked about in this folder")
	flag.StringVar(&c.spall, "spall", "", "of markers, the folder with spall.h, to measure it, too")
	flag.StringVar(&c.tracy, "tracy", "", "of markers, the folder with Tracy's TracyClient.cpp, to measure it, too")
	truths := flag.Bool("truths", false, "print the planted causes and what has to be said of each, as JSON")
	plain, indexed := flag.String("views", "", "measure the timeline of this reel, which has no index"), flag.String("views-indexed", "", "and of this one, which has")
	usage := flag.String("measured", "", "run the arguments as a command and write what it used to this file")
	flag.Parse()
	if *usage != "" && flag.NArg() > 0 {
		code, err := runMeasured(*usage, flag.Args())
		if code != 0 && err == nil {
			os.Exit(code)
		}
		return err
	}
	if *truths {
		return printTruths(os.Stdout)
	}
	if *plain != "" {
		return printViews(context.Background(), *plain, *indexed)
	}
	if c.rounds < 1 || c.calls < 1000 || c.requests < 1000 || flag.NArg() > 0 {
		return fmt.Errorf("rounds must be positive, calls and requests at least 1000, and no arguments given")
	}
	if *plants != "" {
		if c.plants, err = regexp.Compile(*plants); err != nil {
			return err
		}
	}
	if c.callreel, err = filepath.Abs(c.callreel); err != nil {
		return err
	}
	if c.source, err = filepath.Abs("bench/target"); err != nil {
		return err
	}
	if _, err := os.Stat(c.source); err != nil {
		return fmt.Errorf("run from the module's root: %w", err)
	}
	if c.dir, err = os.MkdirTemp("", "callreel-bench-"); err != nil {
		return err
	}
	defer func() {
		if removeErr := os.RemoveAll(c.dir); err == nil {
			err = removeErr
		}
	}()
	if *made != "" {
		if err := os.CopyFS(c.dir, os.DirFS(*made)); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if *table {
		return programTable(ctx, c, os.Stdout)
	}
	if *always > 0 {
		return runAlways(ctx, c, *always)
	}
	if *budgets > 0 {
		return soakBudget(ctx, c, *budgets, *seed)
	}
	if *soaking > 0 {
		return runSoak(ctx, c, *soaking, *seed)
	}
	var rows []row
	for _, p := range parts {
		if *only != "" && !strings.Contains(","+*only+",", ","+p.name+",") {
			continue
		}
		fmt.Fprintf(os.Stderr, "bench: %s …\n", p.name)
		rows = append(rows, p.run(ctx, c)...)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return printTable(os.Stdout, describeMachine(), rows)
}
