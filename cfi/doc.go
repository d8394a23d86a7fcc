// Package cfi reads call frame information: the CIEs and FDEs of .eh_frame and .debug_frame, Mach-O's compact unwind
// information, and the rows they stand for.
//
// A row says, for a range of code addresses, where the caller's frame is (the
// CFA) and where the caller's registers are. The forms are those of DWARF 5 §6.4
// and, for .eh_frame, LSB Core 5.0 §10.5 and §10.6.
//
// ReadImage opens what an image has, and Info.RowAt finds the row of an address,
// whatever form it is in. Table holds the FDEs of one section, Machine makes their
// rows, Evaluator computes the expressions in them, and CompactTable translates
// compact encodings (mach-o/compact_unwind_encoding.h) to rows. Whether the rows
// tell the truth is what cfi/lint finds out.
//
// Every byte is untrusted: lengths are checked, loops are bounded by the bytes
// read, remembered states and registers by fixed limits. A damaged record costs
// that record only; Table.Damage says what was lost.
package cfi
