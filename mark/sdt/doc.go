// Package sdt reads the markers that programs have compiled in (SDT, USDT): the notes of .note.stapsdt, what their arguments are, and what they begin and end.
package sdt
