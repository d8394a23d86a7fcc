//go:build unix

package outfile

import (
	"io/fs"
	"syscall"
)

// owner returns whose file it is.
func owner(fi fs.FileInfo) (uid int, known bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
