package markindex

// Row is what is to be seen of a row.
type Row struct {
	Row  int
	Bars []Bar
}

// SpanRows are the rows from first on, so many, of a thread's or a goroutine's spans that reach from one tick to another, a pixel being
// 1<<grain ticks. Rows without any are left out.
func (l *Lane) SpanRows(first, count int, from, to uint64, grain uint) []Row {
	return barsOf(l.rows, first, count, from, to, grain)
}

// InstantTicks are the lane's instants, those of a pixel as one.
func (l *Lane) InstantTicks(from, to uint64, grain uint) []Bar {
	return l.Instants.ticks(from, to, grain)
}

// SpanRows are SpanRows of asynchronous spans.
func (t *Track) SpanRows(first, count int, from, to uint64, grain uint) []Row {
	return barsOf(t.rows, first, count, from, to, grain)
}

// StepTicks are the steps of the spans in a row; their Title means nothing.
func (t *Track) StepTicks(row int, from, to uint64, grain uint) []Bar {
	if row < 0 || row >= len(t.steps) {
		return nil
	}
	return t.steps[row].ticks(from, to, grain)
}

// Columns are a counter's values, those of a pixel as one, with that which holds at the beginning.
func (t *Track) Columns(from, to uint64, grain uint) []Column {
	return t.graph.columns(from, to, grain)
}

func barsOf(rows []row, first, count int, from, to uint64, grain uint) []Row {
	var out []Row
	first = max(0, first)
	for i := first; i < len(rows) && i-first < count; i++ {
		if bars := rows[i].bars(from, to, grain); len(bars) > 0 {
			out = append(out, Row{i, bars})
		}
	}
	return out
}
