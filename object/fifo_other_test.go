//go:build !unix

package object

import "errors"

func makeFIFO(string) error { return errors.ErrUnsupported }
