package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// A peer traces leaf in its own way.
type peer struct {
	name     string
	compiler string
	flags    []string
	// wrap returns the command that runs the binary with args under the peer,
	// writing to dir.
	wrap func(dir, binary string, args []string) *exec.Cmd
}

func underUftrace(options ...string) func(string, string, []string) *exec.Cmd {
	return func(dir, binary string, args []string) *exec.Cmd {
		words := append([]string{"record", "--no-libcall", "--no-event", "-d", filepath.Join(dir, "uftrace")}, options...)
		return exec.Command("uftrace", append(append(words, binary), args...)...)
	}
}

// underXRay turns off what would flatter: by default functions of less than
// 5 µs are taken back, and a full set of buffers stops recording.
func underXRay(dir, binary string, args []string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(),
		"XRAY_OPTIONS=patch_premain=true xray_mode=xray-fdr xray_logfile_base="+filepath.Join(dir, "xray."),
		"XRAY_FDR_OPTIONS=func_duration_threshold_us=0:grace_period_ms=0:buffer_size=1048576:buffer_max=400")
	return cmd
}

var peers = []peer{
	{name: "uftrace -P on the plain binary", compiler: "gcc", wrap: underUftrace("-P", "^leaf$")},
	{name: "uftrace, recompiled -pg", compiler: "gcc", flags: []string{"-pg"}, wrap: underUftrace()},
	{name: "uftrace, recompiled -finstrument-functions", compiler: "gcc", flags: []string{"-finstrument-functions"}, wrap: underUftrace()},
	{
		name: "XRay FDR, recompiled", compiler: "clang-19",
		flags: []string{"-fxray-instrument", "-fxray-instruction-threshold=1"}, wrap: underXRay,
	},
}

func measurePeers(ctx context.Context, c config) []row {
	plain, err := buildLeaf(ctx, c, "plain", "gcc")
	if err != nil {
		return []row{missing("peers", "", err)}
	}
	results := make([]struct {
		leaf, deep []float64
		binary     string
		err        error
	}, len(peers))
	for i, p := range peers {
		if _, results[i].err = exec.LookPath(p.compiler); results[i].err == nil {
			results[i].binary, results[i].err = buildLeaf(ctx, c, fmt.Sprintf("peer-%d", i), p.compiler, p.flags...)
		}
	}
	var limit, leaf, deep []float64
	for range c.rounds {
		if err := onePlainRound(ctx, c, plain, &limit, &leaf, &deep); err != nil {
			return []row{missing("peers", "", err)}
		}
		for i, p := range peers {
			r := &results[i]
			if r.err != nil {
				continue
			}
			if r.err = p.measure(c, r.binary, "leaf", &r.leaf); r.err == nil {
				r.err = p.measure(c, r.binary, "deep", &r.deep)
			}
		}
	}
	added := median(limit) - median(leaf)
	var rows []row
	for i, p := range peers {
		if r := results[i]; r.err != nil {
			rows = append(rows, missing(p.name, "", r.err))
		} else {
			cost, below := median(r.leaf)-median(leaf), median(r.deep)-median(deep)
			rows = append(rows, row{
				what: p.name + ", leaf", value: ns(cost), ratio: ratio(cost, added),
				note: "under 8 untraced callers " + ns(below),
			})
		}
	}
	return rows
}

func onePlainRound(ctx context.Context, c config, binary string, limit, leaf, deep *[]float64) error {
	for _, m := range []struct {
		mode string
		to   *[]float64
	}{{"limit", limit}, {"leaf", leaf}, {"deep", deep}} {
		if err := appendFigure(exec.CommandContext(ctx, binary, m.mode, strconv.FormatInt(c.calls, 10), "1"), m.to); err != nil {
			return err
		}
	}
	return nil
}

// measure runs one mode once, in a folder that is removed afterwards: a run
// leaves some hundred megabytes.
func (p peer) measure(c config, binary, mode string, to *[]float64) error {
	dir, err := os.MkdirTemp(c.dir, "peer-")
	if err != nil {
		return err
	}
	err = appendFigure(p.wrap(dir, binary, []string{mode, strconv.FormatInt(c.calls, 10), "1"}), to)
	if removeErr := os.RemoveAll(dir); err == nil {
		err = removeErr
	}
	return err
}

// appendFigure runs cmd, which prints one number on the last line of stdout.
func appendFigure(cmd *exec.Cmd, to *[]float64) error {
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(cmd.Path), err)
	}
	words := strings.Fields(string(out))
	if len(words) == 0 {
		return fmt.Errorf("%s: printed no figure", filepath.Base(cmd.Path))
	}
	v, err := strconv.ParseFloat(words[len(words)-1], 64)
	*to = append(*to, v)
	return err
}
