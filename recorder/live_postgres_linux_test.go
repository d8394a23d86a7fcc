package recorder_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// spansByTitle are the spans of a reel, in order of their ends.
func spansByTitle(t *testing.T, file string) map[string][]*reel.Span {
	t.Helper()
	f, err := reel.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string][]*reel.Span{}
	p := reel.NewSpanPairer(f)
	p.OnSpan = func(s *reel.Span) { all[s.Title] = append(all[s.Title], s) }
	f.AllMarks(func(thread uint32, m *reel.Mark) bool { p.Push(thread, m); return true })
	p.Finish()
	return all
}

// whole is how many are, and how many lack an end.
func whole(list []*reel.Span) (whole, unfinished, unstarted int) {
	for _, s := range list {
		switch {
		case s.Unfinished:
			unfinished++
		case s.Unstarted:
			unstarted++
		default:
			whole++
		}
	}
	return whole, unfinished, unstarted
}

// recordPostgres records all markers of a server and its children while work is done.
func recordPostgres(t *testing.T, s *realtest.PostgresServer, work func()) string {
	t.Helper()
	r := realtest.StartRecording(t, append(pidFlag(s), "--follow", "--lossless", "--markers", "postgresql:*")...)
	work()
	if sum := stop(t, r); sum.Dropped != 0 {
		t.Fatalf("%d dropped", sum.Dropped)
	}
	return r.File
}

var processed = regexp.MustCompile(`transactions actually processed: (\d+)/`)

// PostgreSQL's transactions begin in one query and end in another. There are as many as pgbench says, and those in which servers' processes
// begin; all of them end, and so do all queries.
func TestTransactionsOfPostgresAreWhole(t *testing.T) {
	t.Parallel()
	needLive(t, realtest.Postgres)
	s := realtest.PostgresDatabase(t)
	const clients, each, queries = 3, 200, 5
	script := filepath.Join(realtest.SharedFolder(t), "script")
	realtest.Must(t, os.WriteFile(script, []byte("\\set n random(1, 100)\nBEGIN;\nUPDATE t SET v = v + 1 WHERE k = :n;\nSELECT sum(v) FROM t;\nUPDATE u SET v = v + 1;\nEND;\n"), 0o644))
	_, err := s.Run(t.Context(), "psql", "-q", "-c", "CREATE TABLE t AS SELECT k, 0 AS v FROM generate_series(1, 100) k", "-c", "CREATE TABLE u AS SELECT 0 AS v", "postgres")
	realtest.Must(t, err)
	done := 0
	file := recordPostgres(t, s, func() {
		said, err := s.Run(t.Context(), "pgbench", "-n", "-f", script, "-c", strconv.Itoa(clients), "-t", strconv.Itoa(each), "postgres")
		realtest.Must(t, err)
		if m := processed.FindStringSubmatch(said); m != nil {
			done, _ = strconv.Atoi(m[1])
		}
	})
	all := spansByTitle(t, file)
	byThread := map[uint32][]*reel.Span{}
	for _, q := range all["query"] {
		byThread[q.Thread] = append(byThread[q.Thread], q)
	}
	if done != clients*each || len(byThread) != clients {
		t.Fatalf("pgbench says %d transactions; %d processes had queries", done, len(byThread))
	}
	var asked []*reel.Span // transactions that queries began
	crossing := 0
	for _, x := range all["transaction"] {
		list := byThread[x.Thread]
		if len(list) == 0 || x.Begin < list[0].Begin {
			continue
		}
		asked = append(asked, x)
		begun := slices.IndexFunc(list, func(q *reel.Span) bool { return q.Begin <= x.Begin && x.Begin < q.End })
		ended := slices.IndexFunc(list, func(q *reel.Span) bool { return q.Begin < x.End && x.End <= q.End })
		if begun < 0 || ended != begun+queries-1 {
			t.Errorf("a transaction lasts from query %d to query %d", begun, ended)
		} else {
			crossing++
		}
	}
	if n, unfinished, unstarted := whole(asked); n != done || crossing != done || unfinished+unstarted != 0 {
		t.Errorf("%d transactions of %d, %d unfinished, %d unstarted, %d from a query to another", n, done, unfinished, unstarted, crossing)
	}
	if n, unfinished, unstarted := whole(all["query"]); n != done*queries || unfinished+unstarted != 0 {
		t.Errorf("%d queries of %d, %d unfinished, %d unstarted", n, done*queries, unfinished, unstarted)
	}
	if n, unfinished, unstarted := whole(all["lock__wait"]); n == 0 || unfinished+unstarted != 0 {
		t.Errorf("%d waits for locks, %d unfinished, %d unstarted, though all update the same row", n, unfinished, unstarted)
	}
	summary := map[string]reel.SpanSummary{}
	f, err := reel.Open(file)
	realtest.Must(t, err)
	defer f.Close()
	for _, x := range f.SummarizeMarks(reel.MarkSummaryOptions{}).Spans {
		summary[x.Name] = x
	}
	if x := summary["transaction"]; x.Count != x.Complete || x.Count < uint64(done) {
		t.Errorf("%+v", x)
	}
}

// An error jumps over the end of its query: such a query has no end, and costs no other its own.
func TestQueriesThatFailHaveNoEnd(t *testing.T) {
	t.Parallel()
	needLive(t, realtest.Postgres)
	s := realtest.PostgresDatabase(t)
	const n, fails = 1000, 100
	var script strings.Builder
	for i := range n {
		fmt.Fprintf(&script, "SELECT 1/(%d %% %d);\n", i, n/fails)
	}
	file := filepath.Join(realtest.SharedFolder(t), "script")
	realtest.Must(t, os.WriteFile(file, []byte(script.String()), 0o644))
	all := spansByTitle(t, recordPostgres(t, s, func() {
		said, err := s.Run(t.Context(), "psql", "-X", "-q", "-f", file, "postgres")
		if realtest.Must(t, err); strings.Count(said, "division by zero") != fails {
			t.Fatalf("psql says %.2000s", said)
		}
	}))
	if whole, unfinished, unstarted := whole(all["query"]); whole != n-fails || unfinished != fails || unstarted != 0 {
		t.Errorf("%d queries are whole, %d unfinished, %d unstarted", whole, unfinished, unstarted)
	}
	deep := 0
	for _, q := range all["query"] {
		deep = max(deep, q.Depth)
	}
	if deep > 8 {
		t.Errorf("%d queries lie within each other", deep)
	}
	if whole, unfinished, unstarted := whole(all["transaction"]); whole < n || unfinished+unstarted != 0 {
		t.Errorf("%d transactions are whole, %d unfinished, %d unstarted", whole, unfinished, unstarted)
	}
}
