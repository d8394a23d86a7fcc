package budget

// named is what functions cost that always stay.
type named struct {
	spent, cpu float64 // seconds
	told       bool
}

// namedCPU is for how much processor time that is gathered, in seconds.
const namedCPU = 0.05

// tellNamed tells, once, that what always stays takes more than the budget by itself.
func (k *Keeper) tellNamed(list []Function, l load) {
	n := &k.named
	if n.told {
		return
	}
	n.spent += float64(callsOfNamed(list)) * k.price / 1e9
	if n.cpu += l.cpu; n.cpu < namedCPU {
		return
	}
	share := min(n.spent/n.cpu, 1)
	*n = named{told: share > k.c.Share}
	if n.told {
		k.c.Notice("functions that always stay take some %.3g %% of the processor time by themselves, of %g %% wanted: those that --keep-function, --when, "+
			"--args and --ret name, or that can't be switched off", 100*share, 100*k.c.Share)
	}
}

func callsOfNamed(list []Function) (n uint64) {
	for i := range list {
		if list[i].Kept {
			n += list[i].Calls
		}
	}
	return n
}
