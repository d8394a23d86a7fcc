package timeline

import (
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/bigreel"
	"github.com/callreel/callreel/internal/realtest"
)

// However fine the levels are that views would need, they keep to their share.
func TestLevelsKeepToTheirShare(t *testing.T) {
	name := filepath.Join(t.TempDir(), "big.reel")
	realtest.Must(t, bigreel.Write(name, bigreel.Shape{Events: 400_000, Threads: 2, Depth: 30, Seed: 1}))
	f, tl := openTest(t, name, Options{segment: 1 << 14, small: 1, atOnce: 1})
	several := 0
	for _, l := range tl.live.Load().lanes {
		chunks := f.Chunks(l.Thread)
		for i := range l.segments {
			seg := &l.segments[i]
			bytes, levels, size := 0, 0, 0
			for _, c := range chunks[seg.chunk : seg.chunk+seg.chunks] {
				bytes += c.Bytes
			}
			rest := seg.summary
			for p, ok := nextPart(&rest); ok; p, ok = nextPart(&rest) {
				if p.tag > 0 {
					levels++
					size += len(p.body)
				}
			}
			if levels == 1 && size > bytes || levels > 1 && size > bytes/maxShare {
				t.Errorf("segment %d: %d levels of %d bytes, of %d bytes of events", i, levels, size, bytes)
			}
			several += levels / 2
		}
	}
	if several == 0 {
		t.Error("no segment has several levels")
	}
}
