package realtest

import (
	"os"
	"path/filepath"
	"testing"
)

// standIn behaves as CLI.md says that callreel does, as far as this package
// leans on it: the reel exists once recording is on, an interrupt ends the
// recording with code 0 and a summary.
const standIn = `#!/bin/sh
case $1 in
record)
	while [ $# -gt 1 ]; do
		[ "$1" = -o ] && file=$2
		shift
	done
	trap 'printf "{\n\"calls\": 7, \"dropped\": 2,\n\"text_verified\": true}\n"; exit 0' INT
	echo reel >"$file"
	while :; do sleep 0.02; done ;;
report) echo '{"functions": [{"name": "f", "calls": 3}, {"name": "f", "calls": 4}]}' ;;
*) echo "unknown verb" >&2; exit 2 ;;
esac
`

func useStandIn(t *testing.T) {
	t.Helper()
	Need(t, LivePtrace) // not for the tracing: these tests are for Linux
	path := filepath.Join(t.TempDir(), "callreel")
	if err := os.WriteFile(path, []byte(standIn), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CALLREEL", path)
}

func TestRecordingIsOnWhenStartRecordingReturns(t *testing.T) {
	useStandIn(t)
	DefaultSignals(t, os.Interrupt)
	r := StartRecording(t, "-p", "1")
	if _, err := os.Stat(r.File); err != nil {
		t.Error(err)
	}
	if s := r.Stop(); s.Calls != 7 || s.Dropped != 2 || !s.TextVerified {
		t.Errorf("summary %+v", s)
	}
}

func TestCallreelGivesCodeAndOutput(t *testing.T) {
	useStandIn(t)
	if r := Callreel(t, "nonsense"); r.Code != 2 || r.Stderr != "unknown verb\n" {
		t.Errorf("%+v", r)
	}
	report := Decode[Report](t, MustCallreel(t, "report", "x.reel", "--json").Stdout)
	if n := report.Calls("f"); n != 7 {
		t.Errorf("%d calls of f, want 7", n)
	}
}
