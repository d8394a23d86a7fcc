//go:build linux || darwin

package symbols

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// fileKey names a file as it is now: device, number, size and times, of which the last
// change of its inode can't be set by those who write it. "" if that is not known, or the
// file was only just changed.
func fileKey(info fs.FileInfo) string {
	if info == nil {
		return ""
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	changed := changeTime(st)
	if time.Since(changed) < settled || time.Since(info.ModTime()) < settled {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %d %d %d", st.Dev, st.Ino, st.Size, info.ModTime().UnixNano(), changed.UnixNano()))
	return hex.EncodeToString(sum[:16])
}
