package recorder_test

import (
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// Programs that check every register, every way of passing values and moving
// control, and every exception, while all their modules are recorded again and
// again. They end with an error as soon as they find anything wrong.
func TestProgramsThatCheckThemselvesFindNothingWrong(t *testing.T) {
	needLive(t)
	for _, c := range []struct {
		name, target string
		flags, args  []string
		record       []string
		times        int
		some         string // the count that must not be zero
	}{
		{name: "every register", target: "state", args: []string{"2"}, times: 8, some: "calls"},
		{name: "every register, static", target: "state", flags: []string{"-static", "-no-pie"}, args: []string{"2"}, times: 4, some: "calls"},
		{name: "every register, lossless and without clock", target: "state", args: []string{"2"},
			record: []string{"--lossless", "--ring", "512K", "--clock", "none"}, times: 4, some: "calls"},
		{name: "the ABI", target: "abi", times: 8, some: "signals"},
		{name: "the ABI, not optimized", target: "abi", flags: []string{"-O0"}, times: 4, some: "signals"},
		{name: "the ABI with landing pads", target: "abi", flags: []string{"-O3", "-fcf-protection=full"}, times: 4, some: "signals"},
		{name: "exceptions", target: "cxx", args: []string{"2"}, times: 8, some: "thrown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.target == "cxx" {
				realtest.Need(t, realtest.GXX)
			}
			p := realtest.Start(t, realtest.Build(t, c.target, c.flags...), c.args...)
			if calls := cycles(t, realtest.Repeats(t, c.times), p.Pid(), "", c.record...); calls == 0 {
				t.Errorf("no call recorded")
			}
			if counts := p.Finish(); counts[c.some] == 0 {
				t.Errorf("%s is zero in %v", c.some, counts)
			}
		})
	}
}

// refusedShapes are the functions of shapes.S that the exit-site tier can't
// take: there is no room for a jump, or no telling where an exit is.
var refusedShapes = map[string]bool{
	"shape_target_ret":        true,
	"shape_call_ret":          true,
	"tiny_ret_a":              true,
	"tiny_ret_b":              true,
	"shape_tail_notrack":      true,
	"shape_falls":             true,
	"shape_loop_jmp":          true,
	"shape_call_memory_first": true,
}

// Every shape of function has a tier or a reason, and those with a tier are
// really recorded.
func TestEveryShapeHasATierOrAReasonAndIsRecorded(t *testing.T) {
	needLive(t, realtest.AMD64)
	p := realtest.Start(t, realtest.Build(t, "state"), "1")
	list := realtest.Decode[realtest.FunctionList](t,
		realtest.MustCallreel(t, append([]string{"functions"}, append(pidFlag(p), "--json", "-f", "shape_*", "-f", "tiny_*", "-f", "state_*")...)...).Stdout)
	traced := map[string]bool{}
	for _, f := range list.Functions {
		if (f.Tier == "") == (f.Reason == "") {
			t.Errorf("%s has tier %q and reason %q", f.Name, f.Tier, f.Reason)
		}
		if f.Tier == "" && !refusedShapes[f.Name] {
			t.Errorf("%s is refused: %s", f.Name, f.Reason)
		}
		if !strings.HasPrefix(f.Address, "0x") {
			t.Errorf("%s is at %q", f.Name, f.Address)
		}
		if f.Module == strings.TrimPrefix(f.Module, "state") {
			t.Errorf("%s is in module %q", f.Name, f.Module)
		}
		traced[f.Name] = f.Tier != ""
	}
	for _, name := range []string{
		"shape_ret", "shape_padded", "shape_rep_ret", "shape_bnd_ret", "shape_rets", "shape_target_ret", "shape_target_1", "shape_target_2",
		"shape_target_3", "shape_target_4", "shape_call_ret", "tiny_ret_a", "tiny_ret_b", "tiny_move", "tiny_lea", "tiny_nop", "tiny_jmp",
		"tiny_last", "shape_tail_short", "shape_tail_near", "shape_tail_memory", "shape_tail_register", "shape_tail_notrack",
		"shape_tail_jcc_short", "tiny_lea_near", "shape_tail_jcc_near", "shape_tail_only", "shape_push_ret", "shape_retpoline", "shape_falls",
		"shape_fallen_into", "shape_into_middle", "shape_endbr", "shape_loop", "shape_loop_jmp", "shape_jrcxz_first", "shape_call_first",
		"shape_call_second", "shape_call_memory_first", "shape_rip_first", "shape_rip_lea", "shape_rip_immediate", "shape_rip_vex",
		"shape_jcc_first", "shape_target_in_entry", "shape_jmp_first", "shape_enter", "shape_stack_argument", "shape_red_zone",
		"shape_jump_table", "shape_cold", "shape_cold_exit", "shape_alias", "shape_far", "state_seer", "state_seer_endbr", "state_seer_tail",
		"state_call",
	} {
		if _, ok := traced[name]; !ok {
			t.Errorf("%s is not listed", name)
		}
	}
	// Cold parts belong to their functions.
	for name := range traced {
		if strings.HasSuffix(name, ".cold") {
			t.Errorf("the part %s is listed as a function", name)
		}
	}

	r := realtest.StartRecording(t, append(pidFlag(p), "--lossless", "-f", "shape_*", "-f", "tiny_*", "-f", "state_*")...)
	time.Sleep(300 * time.Millisecond)
	s := stop(t, r)
	if s.Functions.Seen != len(list.Functions) || s.Functions.Seen != s.Functions.Traced+sum(s.Functions.Refused) {
		t.Errorf("%d functions listed, %d seen, %d traced, %v refused", len(list.Functions), s.Functions.Seen, s.Functions.Traced, s.Functions.Refused)
	}
	rep := reportOf(t, r.File)
	wide := p.Finish()["vector_width"] > 0
	for name, is := range traced {
		switch got := rep.Report.Calls(name); {
		case is && got == 0 && (name != "shape_rip_vex" || wide):
			t.Errorf("%s is traced, and has no calls", name)
		case !is && got != 0:
			t.Errorf("%s is refused, and has %d calls", name, got)
		}
	}
	// One round calls each of these once; shape_into_middle jumps behind the entry of shape_padded, which is no call.
	once := rep.Report.Calls("shape_padded")
	for _, name := range []string{"shape_enter", "shape_loop", "shape_tail_jcc_near", "shape_tail_only", "shape_cold", "shape_jump_table"} {
		if got := rep.Report.Calls(name); got < once-1 || got > once+1 {
			t.Errorf("%s has %d calls, shape_padded %d", name, got, once)
		}
	}
}

func sum(by map[string]int) (n int) {
	for _, v := range by {
		n += v
	}
	return n
}
