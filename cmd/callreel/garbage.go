package main

import (
	"runtime/debug"
	"sync"
	"time"
)

// garbage is collected but seldom while a recording is prepared. Nearly all that this allocates is kept until it is over, and a
// program with a million functions takes a fifth less time without six rounds of marking it. While it records callreel allocates so
// little that it would keep for minutes what only planning needs, so that is given back then: a while later, because a process that
// needs all processors loses several per cent to that in the first second.
type garbage struct {
	percent int
	once    sync.Once
	timer   *time.Timer
}

func keepGarbage() *garbage {
	const percent = 800
	return &garbage{percent: debug.SetGCPercent(percent)}
}

// soon has it collected when the process has been recorded for a while.
func (g *garbage) soon() {
	const while = 10 * time.Second
	g.timer = time.AfterFunc(while, func() {
		g.usual()
		debug.FreeOSMemory()
	})
}

// usual has the garbage collector run as usual from here on.
func (g *garbage) usual() {
	g.once.Do(func() { debug.SetGCPercent(g.percent) })
}

// left is for when there is nothing more to wait for.
func (g *garbage) left() {
	if g.timer != nil {
		g.timer.Stop()
	}
	g.usual()
}
