package main

import (
	"errors"
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 9, 2}, 3},
	} {
		if got := median(c.v); got != c.want {
			t.Errorf("median(%v) = %v, want %v", c.v, got, c.want)
		}
	}
}

func TestMedianRatioComparesNeighbours(t *testing.T) {
	// The machine halves its speed after the first round; the ratio stays.
	if got := medianRatio([]float64{80, 40, 40}, []float64{100, 50, 50}); got != 0.8 {
		t.Errorf("%v, want 0.8", got)
	}
}

func TestTableShowsWhyAFigureIsMissing(t *testing.T) {
	var b strings.Builder
	rows := []row{
		{what: "a", value: "1 ns", ratio: "1.00", reach: "≤ 2"},
		missing("b", "≤ 3", errors.New("no tracer\nand more")),
	}
	if err := printTable(&b, "machine", rows); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"machine\n", "≤ 2", "n/a", "≤ 3", "no tracer\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "and more") {
		t.Errorf("more than the first line of the reason in\n%s", b.String())
	}
}
