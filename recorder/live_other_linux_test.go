package recorder_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// lookFor returns the path of a program that these tests are glad of but that
// `make test` does not install: a machine that lacks it is no fault, in CI
// neither.
func lookFor(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("this machine lacks %s", name)
	}
	return path
}

// Programs that nothing here was made for, at work while everything in them is
// recorded for a second and then attached to and detached from some times.
func TestOtherProgramsAreUnharmed(t *testing.T) {
	t.Parallel()
	needLive(t)
	for _, c := range []struct {
		name, program string
		args          []string
	}{
		{"a shell", "bash", []string{"-c", shellScript}},
		{"sqlite", "python3", []string{"-u", "-c", sqliteScript}}, // the library: the shell has no way to be told to end
		{"perl", "perl", []string{"-e", perlScript}},
		{"node at work", "node", []string{"-e", nodeScript}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := lookFor(t, c.program)
			if c.program == "python3" {
				realtest.Need(t, realtest.Python3)
				var err error
				if path, err = realtest.Python3.Find(); err != nil {
					t.Fatal(err)
				}
			}
			p := realtest.Start(t, path, c.args...)
			realtest.GiveWay(t, p.Pid())
			s := recordFor(t, "1s", pidFlag(p)...)
			wantUntouched(t, p.Pid())
			if s.Calls == 0 {
				t.Error("no calls")
			}
			t.Logf("%d of %d functions traced, %d calls, %d dropped; stopped %.1f and %.1f ms",
				s.Functions.Traced, s.Functions.Seen, s.Calls, s.Dropped, s.AttachStopMS, s.DetachStopMS)
			if rep := reportOf(t, s.file); rep.Calls != s.Calls {
				t.Errorf("%d calls in the report, %d in the summary", rep.Calls, s.Calls)
			}
			cycle(t, p.Pid())
			if counts := p.Finish(); counts["rounds"] == 0 {
				t.Errorf("%v", counts)
			}
		})
	}
}

// Each prints "ready", works until its stdin ends while it checks its results,
// and prints how many rounds that was.
const (
	shellScript = `
echo ready
n=0
while ! read -t 0; do
	s=0; for i in 1 2 3 4 5 6 7 8 9; do s=$((s + i * i)); done
	[ $s = 285 ] || exit 1
	[ "$(printf %s a b c)" = abc ] || exit 2
	[ "$(printf 'x\ny\n' | cat | while read l; do printf %s "$l"; done)" = xy ] || exit 3
	n=$((n + 1))
done
echo "shell rounds=$n ok"`

	sqliteScript = `
import select, sqlite3, sys
db = sqlite3.connect(":memory:")
db.execute("create table t(a integer primary key, b text)")
print("ready")
rounds = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    db.execute("delete from t")
    db.executemany("insert into t values(?, ?)", ((i, "x" * (i % 50)) for i in range(500)))
    got = db.execute("with recursive c(n) as (select 1 union all select n + 1 from c where n < 500) select sum(n), (select sum(length(b)) from t) from c").fetchone()
    if got != (125250, 12250):
        sys.exit("wrong: %r" % (got,))
    rounds += 1
print("sqlite rounds=%d ok" % rounds)`

	perlScript = `
$| = 1; print "ready\n"; my $n = 0; my $in = "";
while (1) {
	my $r = ""; vec($r, 0, 1) = 1; last if select($r, undef, undef, 0);
	my %h = map { $_ => $_ * $_ } 1 .. 200; my $s = 0; $s += $h{$_} for sort { $a <=> $b } keys %h;
	die "wrong" unless $s == 2686700 and join("", "abcabc" =~ /(b.)/g) eq "bcbc" and !eval { die "x\n" };
	$n++;
}
print "perl rounds=$n ok\n";`

	nodeScript = `
const crypto = require("crypto"), zlib = require("zlib");
let rounds = 0, done = false;
function work() {
	const words = Array.from({length: 300}, (_, i) => ((i * 2654435761) % 4294967296).toString(16));
	const table = JSON.parse(JSON.stringify(Object.fromEntries(words.map((w, i) => [w, i]))));
	let s = 0;
	for (const w of words.sort()) { try { if (table[w] % 7 === 0) throw new Error(w); s += table[w]; } catch (e) { s -= e.message.length; } }
	const packed = zlib.deflateSync(words.join(" "));
	return crypto.createHash("sha256").update(zlib.inflateSync(packed)).update(String(s)).digest("hex");
}
const want = work();
process.stdin.on("end", () => { done = true; }).resume();
console.log("ready");
(function round() {
	if (done) { console.log("node rounds=" + rounds + " ok"); return; }
	for (let i = 0; i < 10; i++, rounds++) if (work() !== want) { console.log("wrong"); process.exit(1); }
	setImmediate(round);
})();`
)

const nodeServer = `
const http = require("http");
const server = http.createServer((request, response) => {
	const n = Number(request.url.slice(1));
	setImmediate(() => response.end(JSON.stringify({n, square: n * n, text: "x".repeat(n % 100)})));
});
server.listen(0, "127.0.0.1", () => { console.log("ready"); console.log("port " + server.address().port); });`

// A node server that is asked all the while answers right.
func TestANodeServerAnswersRightWhileRecorded(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, lookFor(t, "node"), "-e", nodeServer)
	url := "http://127.0.0.1:" + strings.TrimPrefix(p.WaitLine("port "), "port ")
	client := &http.Client{Timeout: soon}
	defer client.CloseIdleConnections()
	load := underLoad(t, func(ctx context.Context) (n int64, err error) {
		for ; ctx.Err() == nil; n++ {
			want := fmt.Sprintf(`{"n":%d,"square":%d,"text":"%s"}`, n, n*n, strings.Repeat("x", int(n%100)))
			response, err := client.Get(fmt.Sprintf("%s/%d", url, n))
			if err != nil {
				return n, err
			}
			body, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err != nil || string(body) != want {
				return n, fmt.Errorf("/%d answered %.200q, %w", n, body, err)
			}
		}
		return n, nil
	})
	s := recordFor(t, "1s", pidFlag(p)...)
	wantUntouched(t, p.Pid())
	load.end(t)
	if s.Calls == 0 {
		t.Error("no calls")
	}
	t.Logf("%d of %d functions traced, %d calls", s.Functions.Traced, s.Functions.Seen, s.Calls)
}
