package symbols

// keyed is a number to sort by, and what it stands for.
type keyed struct {
	key   uint64
	index uint32
}

// sortKeyed sorts by key; equal keys stay in order. It is a radix sort by bytes from
// the lowest up, which skips bytes that all keys share: link addresses need four of
// them, and comparing takes several times as long. scratch is as long as the list;
// the result is in one of the two.
func sortKeyed(list, scratch []keyed) []keyed {
	var varies uint64
	for k := range list {
		varies |= list[k].key ^ list[0].key
	}
	for shift := 0; shift < 64; shift += 8 {
		if varies>>shift&0xff == 0 {
			continue
		}
		var next [256]uint32
		for k := range list {
			next[uint8(list[k].key>>shift)]++
		}
		at := uint32(0)
		for k := range next {
			at, next[k] = at+next[k], at
		}
		for k := range list {
			slot := &next[uint8(list[k].key>>shift)]
			scratch[*slot] = list[k]
			*slot++
		}
		list, scratch = scratch, list
	}
	return list
}
