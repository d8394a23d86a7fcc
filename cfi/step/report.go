package step

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/cfi/lint"
)

// findings makes findings of an image's marks: an error that goes on from one instruction to the next, with none between
// that was right, is one.
func (im *image) findings() []Finding {
	addrs := make([]uint64, 0, len(im.marks))
	for addr := range im.marks {
		addrs = append(addrs, addr)
	}
	slices.Sort(addrs)
	var list []Finding
	var open [bits]*issue
	part := uint64(0)
	for _, addr := range addrs {
		if start := im.partOf(addr); start != part {
			part, open = start, [bits]*issue{}
		}
		m := im.marks[addr]
		for bit := range open {
			i := m.issues[bit]
			if i != nil && (open[bit] == nil || open[bit].kind != i.kind || open[bit].delta != i.delta) {
				list = append(list, Finding{im.module, lint.Finding{
					Kind: i.kind, Function: im.nameAt(addr), Address: addr, Says: i.says, Truth: i.truth, Directive: i.mend(open[bit]),
				}})
			}
			// Where the CFA is wrong nothing is known of the registers: their errors go on.
			if i != nil || m.wrong>>bitCFA&1 == 0 {
				open[bit] = i
			}
		}
	}
	return list
}

// mend is the directive that mends an issue when the one before it, nil for none, is mended, too.
func (i *issue) mend(before *issue) string {
	if i.adjust == 0 {
		return i.directive
	}
	adjust := i.adjust
	if before != nil {
		adjust -= before.adjust
	}
	return fmt.Sprintf(".cfi_adjust_cfa_offset %d", adjust)
}

// sortFindings orders findings by image and address.
func sortFindings(list []Finding) {
	slices.SortStableFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Module, b.Module), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Says, b.Says))
	})
}

// noRow makes the issue of a link address whose row cannot be had.
func (im *image) noRow(addr uint64, err error) *issue {
	i := &issue{kind: lint.Damaged, says: err.Error(), truth: "a call is in progress"}
	if errors.Is(err, cfi.ErrNotDescribed) || errors.Is(err, cfi.ErrNone) {
		i.kind, i.says, i.directive = lint.NoCFI, "nothing", ".cfi_startproc"
	}
	if s := im.symbolAt(addr); s != nil {
		i.truth = fmt.Sprintf("a function of %d bytes", s.Size)
	}
	return i
}
