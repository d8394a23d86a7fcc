package process

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// returnCode is the code that functions return to which are called for us. It lies in what the last page of some code has behind the
// code, since no mapping has to be made for that. Nothing else leads there.
type returnCode struct {
	p    *Process
	at   uint64
	code []byte
	old  []byte   // what was there
	lock *os.File // held while the code is in use
}

// spareOffset keeps clear of what else may be put behind the code, see layDetour and slackBehindCode.
const spareOffset = 64

// returnCode finds a place. It must be laid, and taken away.
func (p *Process) returnCode() (*returnCode, error) {
	auxv, err := p.Auxv()
	if err != nil {
		return nil, err
	}
	code, _, _ := arch.returnCode()
	at, err := p.spareCode(auxv, spareOffset+uint64(len(code)))
	if err != nil {
		return nil, err
	}
	c := &returnCode{p: p, at: at + spareOffset, code: code, old: make([]byte, len(code))}
	_, err = p.ReadAt(c.old, c.at)
	return c, err
}

func (c *returnCode) end() uint64 {
	_, _, end := arch.returnCode()
	return c.at + end
}

// lay writes the code unless it is there: a caller that was killed may have left a thread that still comes back to it. Others that want
// to call functions in the process are kept away meanwhile, by a lock that ends with us.
func (c *returnCode) lay() error {
	f, err := c.p.openFile("", os.O_RDONLY)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return fmt.Errorf("process %d: somebody else has it call a function just now", c.p.pid)
	}
	c.lock = f
	if _, err := c.p.ReadAt(c.old, c.at); err != nil { // another one has put it away just now
		return c.unlock(err)
	}
	if bytes.Equal(c.old, c.code) {
		return nil
	}
	if _, err := c.p.WriteAt(c.code, c.at); err != nil {
		return c.unlock(err)
	}
	return nil
}

// unlock lets others call functions again, and passes an error on.
func (c *returnCode) unlock(err error) error {
	_ = c.lock.Close()
	c.lock = nil
	return err
}

// take puts back what was there; code that was found stays.
func (c *returnCode) take() error {
	if c.lock == nil {
		return nil
	}
	var err error
	if !bytes.Equal(c.old, c.code) {
		if _, err = c.p.WriteAt(c.old, c.at); !c.p.Alive() {
			err = nil
		}
	}
	return c.unlock(err)
}
