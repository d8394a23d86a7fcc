// Package control lets another callreel ask a recorder something: one line each way, over a socket that is named by the process which is
// recorded.
//
// Each side looks who the other is: requests come from the recorder's own user or root, and answers from that user, whose socket it is.
package control

import "errors"

// ErrNobody: no recorder of that process listens, of one's own user or, for root, of the process's.
var ErrNobody = errors.New("it is not being recorded by a callreel that could be asked")
