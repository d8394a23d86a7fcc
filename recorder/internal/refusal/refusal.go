// Package refusal has the error that every package of the recorder wraps when it declines to do what could harm the process.
package refusal

import "errors"

// Err is in the chain of such an error; what could go wrong is said in front of it or behind.
var Err = errors.New("refused")
