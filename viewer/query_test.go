package viewer

import (
	"math"
	"net/http"
	"net/url"
	"testing"
)

// FuzzQuery checks what is made of any query against the bounds that the rest relies on.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"from=0&to=1e9&width=1800&lanes=0:0:40,1:0:40", "lanes=1,2,3", "lanes=all", "ids=1,2,3&f=4", "from=-5.5&to=9007199254740992", "from=NaN", "width=99999999999999999999",
		"lanes=4294967295:2147483647:4096", "ticket=a-b_c", "q=*%00?", "f=4294967295&min=0x1p3&max=+Inf", "lanes=3,1,3,2",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		const lanes = 4
		q, err := parseQuery(&http.Request{URL: &url.URL{RawQuery: raw}})
		if err != nil {
			return
		}
		width := q.integer("width", 1, 1, maxWidth)
		rows := q.rows(lanes, width)
		total := 0
		for _, r := range rows {
			total += r.Count
			if q.err == nil && (r.Lane >= lanes || r.First < 0 || r.Count < 0 || r.Count > maxRows) {
				t.Errorf("%q: %+v", raw, r)
			}
		}
		if q.err == nil && (width < 1 || width > maxWidth || len(rows) > maxLanes || total > maxRows || total*width > maxBars) {
			t.Errorf("%q: %d rows of %d pixels", raw, total, width)
		}
		q.err = nil
		last := int64(-1)
		for _, lane := range q.lanes(lanes) {
			if q.err == nil && (lane >= lanes || int64(lane) <= last) {
				t.Errorf("%q: lane %d", raw, lane)
			}
			last = int64(lane)
		}
		q.err = nil
		from, to := q.interval()
		if q.err == nil && (from > to || from > maxTime || to > maxTime && to != math.MaxUint64) {
			t.Errorf("%q: from %d to %d", raw, from, to)
		}
		if len(q.ticket()) > maxTicket || len(q.text("q")) > maxGlob || len(q.list("ids", maxNames)) > maxNames {
			t.Errorf("%q: beyond its bounds", raw)
		}
	})
}
