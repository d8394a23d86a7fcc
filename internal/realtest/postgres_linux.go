package realtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// PostgresServer is a PostgreSQL of the test's own on a loopback port, with an empty database.
type PostgresServer struct {
	*Proc
	port, bin, folder string
	as                *syscall.Credential // nil: who runs the test
}

// PostgresDatabase starts a PostgreSQL and returns when it answers. It does not run as root, so for root it is
// nobody's: of a user that has a name, which it wants.
func PostgresDatabase(t testing.TB) *PostgresServer {
	t.Helper()
	s := &PostgresServer{bin: filepath.Dir(Tool(t, Postgres)), port: freePort(t), folder: t.TempDir()}
	if os.Geteuid() == 0 {
		nobody, err := user.Lookup("nobody")
		if err != nil {
			t.Fatalf("realtest: %v", err)
		}
		uid, _ := strconv.ParseUint(nobody.Uid, 10, 32)
		gid, _ := strconv.ParseUint(nobody.Gid, 10, 32)
		s.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		s.folder = filepath.Join(SharedFolder(t), "own")
		if err := errors.Join(os.Mkdir(s.folder, 0o755), os.Chown(s.folder, int(uid), int(gid))); err != nil {
			t.Fatalf("realtest: %v", err)
		}
	}
	data := filepath.Join(s.folder, "data")
	if said, err := s.command(t.Context(), "initdb", "-D", data, "-U", "test", "-A", "trust", "--no-sync", "--locale=C", "-E", "UTF8").CombinedOutput(); err != nil {
		t.Fatalf("realtest: initdb: %v\n%s", err, said)
	}
	s.Proc = StartCommand(t, s.command(context.Background(), "postgres", "-D", data, "-p", s.port, "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "autovacuum=off"))
	t.Cleanup(s.quit)
	s.waitAnswer(net.JoinHostPort("127.0.0.1", s.port), func() error {
		_, err := s.Run(t.Context(), "pg_isready", "-q")
		return err
	})
	return s
}

func (s *PostgresServer) command(ctx context.Context, tool string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, tool), args...)
	cmd.Dir = s.folder
	if s.as != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	}
	return cmd
}

// quit ends it as its administrator would, so that its processes are gone, too.
func (s *PostgresServer) quit() {
	if s.Alive() {
		s.Signal(syscall.SIGINT)
	}
	select {
	case <-s.ended():
	case <-time.After(patience):
	}
}

// Run runs a client, such as psql or pgbench, on the server, and returns what it printed.
func (s *PostgresServer) Run(ctx context.Context, client string, args ...string) (string, error) {
	out, err := s.command(ctx, client, append([]string{"-h", "127.0.0.1", "-p", s.port, "-U", "test"}, args...)...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %q: %w\n%s", client, args, err, out)
	}
	return string(out), nil
}
