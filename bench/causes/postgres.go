package causes

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// pgClient is one session of postgres, by its protocol 3.0 without a password.
type pgClient struct {
	conn net.Conn
	in   *bufio.Reader
}

func newPGClient(conn net.Conn) (*pgClient, error) {
	start := "user\x00work\x00database\x00postgres\x00\x00"
	head := binary.BigEndian.AppendUint32(nil, uint32(8+len(start)))
	head = binary.BigEndian.AppendUint32(head, 3<<16)
	c := &pgClient{conn, bufio.NewReader(conn)}
	if _, err := conn.Write(append(head, start...)); err != nil {
		return nil, err
	}
	_, err := c.answer()
	return c, err
}

// do runs a statement and returns the first column of the last row.
func (c *pgClient) do(sql string) (string, error) {
	message := append([]byte{'Q'}, binary.BigEndian.AppendUint32(nil, uint32(5+len(sql)))...)
	if _, err := c.conn.Write(append(append(message, sql...), 0)); err != nil {
		return "", err
	}
	return c.answer()
}

// answer reads messages until the session is ready.
func (c *pgClient) answer() (value string, err error) {
	for {
		var head [5]byte
		if _, readErr := io.ReadFull(c.in, head[:]); readErr != nil {
			return value, errors.Join(err, readErr)
		}
		n := binary.BigEndian.Uint32(head[1:])
		if n < 4 || n > 1<<20 {
			return value, fmt.Errorf("postgres: a message of %d bytes", n)
		}
		body := make([]byte, n-4)
		if _, readErr := io.ReadFull(c.in, body); readErr != nil {
			return value, errors.Join(err, readErr)
		}
		switch head[0] {
		case 'E':
			err = fmt.Errorf("postgres: %s", strings.ReplaceAll(string(body), "\x00", " "))
		case 'D':
			if size := int32(binary.BigEndian.Uint32(body[2:])); size >= 0 && int(size) <= len(body)-6 {
				value = string(body[6 : 6+size])
			}
		case 'Z':
			return value, err
		}
	}
}

// postgresPlant is what the recorded session is asked now and then, and what another one does.
type postgresPlant struct {
	options []string
	odd     func(c *pgClient) error // by the recorded session; nil if the other one is the cause
	other   func(c *pgClient) error // in between, by the other session
	slow    time.Duration
	fill    []string // statements that make what the plant needs
}

func (plant postgresPlant) start(ctx context.Context, p *place) (*Instance, error) {
	i := &Instance{}
	data := filepath.Join(p.dir, "data")
	as, err := notRoot(p.dir)
	if err != nil {
		return nil, err
	}
	initdb := as(exec.CommandContext(ctx, filepath.Join(filepath.Dir(p.found[0]), "initdb"), "-D", data, "-U", "work", "-A", "trust", "--no-sync", "--locale=C", "-E", "UTF8"))
	if said, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, said)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	args := append([]string{"-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "autovacuum=off"}, plant.options...)
	r, err := i.run(as(exec.CommandContext(ctx, p.found[0], args...)))
	if err != nil {
		return nil, err
	}
	r.stop = syscall.SIGINT
	sessions, err := openSessions(r, port)
	if err == nil {
		err = i.fillPostgres(sessions[0], plant.fill)
	}
	if err != nil {
		i.Kill()
		return nil, err
	}
	var log requests
	i.load = func(ctx context.Context) error {
		err := together(func() error { return plant.ask(ctx, p.seed, sessions[0], &log) }, func() error { return plant.meanwhile(ctx, sessions[1]) })
		return errors.Join(err, sessions[0].conn.Close(), sessions[1].conn.Close())
	}
	i.log = func() Log { return log.log(plant.slow) }
	i.begin(ctx)
	return i, nil
}

func (plant postgresPlant) ask(ctx context.Context, seed int, c *pgClient, log *requests) error {
	next := time.Now().Add(300 * time.Millisecond)
	return repeat(ctx, seed, 500*time.Microsecond, func(n int, chance *rand.Rand) error {
		odd := plant.odd != nil && time.Now().After(next)
		if odd {
			next = time.Now().Add(400 * time.Millisecond)
		}
		id := chance.IntN(20000)
		return log.time(odd, func() error {
			var err error
			switch {
			case odd:
				err = plant.odd(c)
			case n%4 == 0:
				_, err = c.do("UPDATE item SET n = n + 1 WHERE id = " + strconv.Itoa(id))
			default:
				_, err = c.do("SELECT n, note FROM item WHERE id = " + strconv.Itoa(id))
			}
			return err
		})
	})
}

func (plant postgresPlant) meanwhile(ctx context.Context, c *pgClient) error {
	for plant.other != nil {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(350 * time.Millisecond):
		}
		if err := plant.other(c); err != nil {
			return err
		}
	}
	return nil
}

func openSessions(r *proc, port string) (sessions []*pgClient, err error) {
	for start := time.Now(); len(sessions) < 2; {
		conn, err := dial(r, port)
		if err != nil {
			return nil, err
		}
		c, err := newPGClient(conn)
		if err != nil { // it listens before it takes clients
			if time.Since(start) > patience {
				return nil, err
			}
			_ = conn.Close() // of no use
			time.Sleep(30 * time.Millisecond)
			continue
		}
		sessions = append(sessions, c)
	}
	return sessions, nil
}

// fillPostgres makes the table, and says which process the session has.
func (i *Instance) fillPostgres(c *pgClient, more []string) error {
	for _, sql := range append([]string{
		"CREATE TABLE item (id int PRIMARY KEY, n int, note text) WITH (fillfactor = 70)",
		"INSERT INTO item SELECT i, i, 'note ' || i || repeat('.', 100) FROM generate_series(0, 59999) i",
		"SET synchronous_commit = off",
	}, more...) {
		if _, err := c.do(sql); err != nil {
			return err
		}
	}
	pid, err := c.do("SELECT pg_backend_pid()")
	if err != nil {
		return err
	}
	i.PID, err = strconv.Atoi(pid)
	return err
}

// notRoot lets a program run as a user that it does run as, who owns dir.
func notRoot(dir string) (func(*exec.Cmd) *exec.Cmd, error) {
	if os.Getuid() != 0 {
		return func(cmd *exec.Cmd) *exec.Cmd { return cmd }, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err, gidErr, os.Chown(dir, int(uid), int(gid)), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
			return nil, err
		}
		return func(cmd *exec.Cmd) *exec.Cmd {
			asUser(cmd, uint32(uid), uint32(gid))
			cmd.Dir = dir
			return cmd
		}, nil
	}
	return nil, errors.New("no user that isn't root: postgres, nobody")
}

func postgres() []Plant {
	plant := func(name, handler string, slow time.Duration, t Truth, p postgresPlant) Plant {
		p.slow = slow
		return Plant{Name: "postgres: " + name, Handler: handler, Slow: slow, Truth: t,
			needs: [][]string{{"/usr/lib/postgresql/15/bin/postgres", "postgres"}}, start: p.start}
	}
	run := func(statements ...string) func(*pgClient) error {
		return func(c *pgClient) error {
			for _, sql := range statements {
				if _, err := c.do(sql); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return []Plant{
		plant("vacuum", "PortalRun", 5*ms, Truth{Path: []string{"ExecVacuum", "vacuum", "heap_vacuum_rel"}, Kinds: fresh, States: []string{CPU, Blocked}}, postgresPlant{
			odd: run("VACUUM item"), other: run("UPDATE item SET n = n + 1 WHERE id > 20000 AND id % 5 = 0"),
		}),
		plant("checkpoint", "PortalRun", 5*ms, Truth{Path: []string{"RequestCheckpoint"}, Kinds: fresh, States: []string{Blocked}}, postgresPlant{
			odd: run("CHECKPOINT"), other: run("UPDATE item SET n = n + 1 WHERE id > 20000 AND id % 5 = 0"),
		}),
		plant("scan without an index", "PortalRun", 4*ms, Truth{Path: []string{"heap_getnextslot", "ExecSeqScan", "ExecAgg", "standard_ExecutorRun", "ExecScan", "heapgettup*"}, Kinds: []string{NewPath, MoreCalls}, States: []string{CPU}}, postgresPlant{
			odd: run("SELECT count(*) FROM item WHERE note = 'note 7'"),
		}),
		plant("loop in plpgsql", "PortalRun", 5*ms, Truth{Path: []string{"plpgsql_*", "exec_stmt*", "ExecuteDoStmt"}, Kinds: fresh, States: []string{CPU}}, postgresPlant{
			odd: run("DO $$ DECLARE n int := 0; BEGIN FOR i IN 1..20000 LOOP n := n + i % 7; END LOOP; END $$"),
		}),
		plant("trigger", "PortalRun", 5*ms, Truth{Path: []string{"ExecBRUpdateTriggers", "ExecCallTriggerFunc", "plpgsql_*", "AfterTrigger*"}, Kinds: fresh, States: []string{CPU}}, postgresPlant{
			odd: run("UPDATE item SET note = 'checked' WHERE id = 7"),
			fill: []string{
				"CREATE FUNCTION check_item() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE n int := 0; BEGIN FOR i IN 1..15000 LOOP n := n + i % 7; END LOOP; RETURN NEW; END $$",
				"CREATE TRIGGER check_item BEFORE UPDATE OF note ON item FOR EACH ROW EXECUTE FUNCTION check_item()",
			},
		}),
		plant("pg_sleep", "PortalRun", 8*ms, Truth{Path: []string{"pg_sleep", "WaitLatch"}, Kinds: fresh, States: []string{Blocked}}, postgresPlant{odd: run("SELECT pg_sleep(0.02)")}),
		plant("index made by another session", "pg_analyze_and_rewrite_fixedparams", 10*ms, Truth{Path: []string{"LockAcquire*", "LockRelationOid", "ProcSleep"}, Kinds: []string{NewPath, SlowerCalls}, States: []string{Blocked}}, postgresPlant{
			other: run("BEGIN; CREATE INDEX item_note ON item (note); ROLLBACK"),
		}),
		plant("row locked by another transaction", "PortalRun", 10*ms, Truth{Path: []string{"XactLockTableWait", "LockAcquire*", "ProcSleep", "heap_update"}, Kinds: []string{NewPath, SlowerCalls}, States: []string{Blocked}}, postgresPlant{
			other: run("BEGIN; UPDATE item SET n = n + 1 WHERE id < 20000 AND id % 10 = 0; SELECT pg_sleep(0.25); COMMIT"),
		}),
		plant("advisory lock", "PortalRun", 10*ms, Truth{Path: []string{"pg_advisory*", "LockAcquire*", "ProcSleep"}, Kinds: fresh, States: []string{Blocked}}, postgresPlant{
			odd:   run("SELECT pg_advisory_lock(7)", "SELECT pg_advisory_unlock(7)"),
			other: run("SELECT pg_advisory_lock(7)", "SELECT pg_sleep(0.25)", "SELECT pg_advisory_unlock(7)"),
		}),
		plant("table locked by VACUUM FULL", "pg_analyze_and_rewrite_fixedparams", 10*ms, Truth{Path: []string{"LockAcquire*", "LockRelationOid", "ProcSleep"}, Kinds: []string{NewPath, SlowerCalls}, States: []string{Blocked}}, postgresPlant{
			other: run("VACUUM FULL item"),
		}),
	}
}
