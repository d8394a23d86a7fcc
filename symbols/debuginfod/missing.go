package debuginfod

import (
	"os"
	"time"

	"github.com/callreel/callreel/internal/outfile"
)

// missingSuffix marks a file that no server has; its time is when that was learnt.
const missingSuffix = ".missing"

// knownMissing says whether the servers were asked in vain a short while ago.
func (c *Client) knownMissing(path string) bool {
	info, err := os.Stat(path + missingSuffix)
	if err != nil {
		return false
	}
	age := time.Since(info.ModTime())
	return age >= 0 && age < or(c.MissingFor, DefaultMissingFor)
}

// rememberMissing notes that no server has a file. That it cannot be noted only means
// that they are asked again.
func (c *Client) rememberMissing(path string) {
	f, err := outfile.Create(path+missingSuffix, outfile.Options{Force: true})
	if err != nil {
		return
	}
	_ = f.Close() // empty: its time is what counts
}
