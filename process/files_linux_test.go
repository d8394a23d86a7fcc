package process

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestWhatIsNoRegularFileIsNotOpened(t *testing.T) {
	dir := t.TempDir()
	file, fifo, link := filepath.Join(dir, "file"), filepath.Join(dir, "fifo"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("fifo", link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{file: true, fifo: false, link: false, dir: false, "/dev/null": false, "/dev/tty": false, file + "x": false} {
		got := make(chan bool, 1)
		go func() { got <- canRead(path, nil) }()
		select {
		case can := <-got:
			if can != want {
				t.Errorf("%s: can be read: %v", path, can)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: opening it waits", path)
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		t.Fatal(err)
	}
	if !canRead(file, &Mapping{Inode: st.Ino}) || canRead(file, &Mapping{Inode: st.Ino + 1}) {
		t.Error("the inode does not decide")
	}
}
