package guest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// A cpio writes the kernel's initial file system (Documentation/driver-api/early-userspace/buffer-format.rst, "newc").
type cpio struct {
	w    *bufio.Writer
	next int // inode
	size int64
	err  error
}

const (
	cpioFolder = 0o040755
	cpioFile   = 0o100755
	cpioDevice = 0o020600
)

func (c *cpio) write(p []byte) {
	if c.err == nil {
		_, c.err = c.w.Write(p)
		c.size += int64(len(p))
	}
}

func (c *cpio) pad() { c.write(make([]byte, -c.size&3)) }

// add writes an entry; major and minor are a device's.
func (c *cpio) add(name string, mode int, data []byte, major, minor int) {
	c.next++
	c.write(fmt.Appendf(nil, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		c.next, mode, 0, 0, 1, 0, len(data), 0, 0, major, minor, len(name)+1, 0))
	c.write(append([]byte(name), 0))
	c.pad()
	c.write(data)
	c.pad()
}

// writeInitrd writes the initial file system: the program that the kernel starts, and modules in their order.
func writeInitrd(w io.Writer, program string, modules []string) error {
	c := &cpio{w: bufio.NewWriter(w)}
	for _, dir := range []string{"dev", "proc", "sys", "newroot", ModulesDir} {
		c.add(dir, cpioFolder, nil, 0, 0)
	}
	c.add("dev/console", cpioDevice, nil, 5, 1)
	code, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	c.add("init", cpioFile, code, 0, 0)
	for i, file := range modules {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		c.add(fmt.Sprintf("%s/%03d-%s", ModulesDir, i, filepath.Base(file)), cpioFile, data, 0, 0)
	}
	c.add("TRAILER!!!", 0, nil, 0, 0)
	if c.err != nil {
		return c.err
	}
	return c.w.Flush()
}
