package guest

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// WritePayload makes the tar file of a guest's payload: jobs, and files, which are at the same paths in the guest as here.
func WritePayload(name string, jobs []Job, files []string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	err = writePayload(f, jobs, files)
	return errors.Join(err, f.Close())
}

func writePayload(w io.Writer, jobs []Job, files []string) error {
	text, err := json.Marshal(jobs)
	if err != nil {
		return err
	}
	out := tar.NewWriter(w)
	if err := out.WriteHeader(&tar.Header{Name: JobsFile, Mode: 0o644, Size: int64(len(text))}); err != nil {
		return err
	}
	if _, err := out.Write(text); err != nil {
		return err
	}
	for _, file := range files {
		if err := addFile(out, file); err != nil {
			return fmt.Errorf("guest: payload: %w", err)
		}
	}
	return out.Close()
}

func addFile(out *tar.Writer, file string) error {
	info, err := os.Lstat(file)
	if err != nil {
		return err
	}
	link := ""
	switch info.Mode().Type() {
	case 0:
	case os.ModeSymlink:
		if link, err = os.Readlink(file); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%s: it is no file", file)
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	h.Name, h.Uid, h.Gid, h.Uname, h.Gname = strings.TrimPrefix(path, "/"), 0, 0, "", ""
	if err := out.WriteHeader(h); err != nil || link != "" {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, f)
	return errors.Join(err, f.Close())
}
