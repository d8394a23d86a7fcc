package why

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/callreel/callreel/reel"
)

// CallID names a call of a reel. Its text is THREAD:START:FUNCTION, in decimal.
type CallID struct {
	// Thread is the key of the thread that the call was entered on, see reel.Thread.
	Thread uint32
	// Start is when, in ticks, as in reel.Call.
	Start uint64
	// Function is the ID of its function.
	Function uint32
}

// String returns the ID as ParseCallID reads it.
func (id CallID) String() string {
	return fmt.Sprintf("%d:%d:%d", id.Thread, id.Start, id.Function)
}

// ParseCallID is the inverse of [CallID.String].
func ParseCallID(text string) (id CallID, err error) {
	parts := strings.Split(text, ":")
	if len(parts) == 3 {
		thread, err1 := strconv.ParseUint(parts[0], 10, 32)
		start, err2 := strconv.ParseUint(parts[1], 10, 64)
		function, err3 := strconv.ParseUint(parts[2], 10, 32)
		if err1 == nil && err2 == nil && err3 == nil && thread != 0 && function != 0 && function <= reel.MaxID {
			return CallID{Thread: uint32(thread), Start: start, Function: uint32(function)}, nil
		}
	}
	return id, fmt.Errorf("why: %q is not the ID of a call: THREAD:START:FUNCTION, as the page and --json give it", text)
}
