package ownfolder

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Honest says whether the file system that a path is on keeps owners itself. Those in user
// space (FUSE) may be any user's, who can make up what they like.
func Honest(path string, info fs.FileInfo) bool {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(path, &st)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return false
		}
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(info, now) && uint32(st.Type) != unix.FUSE_SUPER_MAGIC
}
