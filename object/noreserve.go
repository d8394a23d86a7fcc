//go:build unix && !freebsd

package object

import "golang.org/x/sys/unix"

// mapNoReserve keeps the system from setting memory aside for all of a mapping.
const mapNoReserve = unix.MAP_NORESERVE
