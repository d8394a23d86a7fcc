package viewer

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/callreel/callreel/reel/timeline"
)

// query reads the parameters of a request. All are bounded; the first that is wrong is kept in err, which the caller looks at
// once it has read all.
type query struct {
	ctx    context.Context
	values url.Values
	err    error
}

// Bounds of parameters.
const (
	maxQuery  = 48 << 10 // bytes
	maxWidth  = 1 << 14  // pixels
	maxLanes  = 4096     // in one request
	maxRows   = 4096     // in one request
	maxBars   = 4 << 20  // pixels in all rows: 150 MB if each had a bar
	maxNames  = 4096     // IDs in one request
	maxGlob   = 1024     // bytes of a text to find
	maxTicket = 32
)

func parseQuery(r *http.Request) (*query, error) {
	if len(r.URL.RawQuery) > maxQuery {
		return nil, failed(http.StatusRequestURITooLong, "the query has more than %d bytes", maxQuery)
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, failed(http.StatusBadRequest, "the query can't be read: %v", err)
	}
	return &query{ctx: r.Context(), values: values}, nil
}

func (q *query) fail(format string, args ...any) {
	if q.err == nil {
		q.err = failed(http.StatusBadRequest, format, args...)
	}
}

func (q *query) has(key string) bool { return q.values.Get(key) != "" }

// integer reads a whole number from low to high, both included; otherwise is what it is when it isn't there.
func (q *query) integer(key string, otherwise, low, high int) int {
	text := q.values.Get(key)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		q.fail("%s=%.40q: a whole number from %d to %d is expected", key, text, low, high)
		return otherwise
	}
	return n
}

// maxTime is the last time that a page can name exactly, in nanoseconds: 104 days.
const maxTime = 1 << 53

// time reads a time in nanoseconds. Pages calculate in floating point and may be beyond the recording's ends: those become its
// ends.
func (q *query) time(key string, otherwise uint64) uint64 {
	text := q.values.Get(key)
	if text == "" {
		return otherwise
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.Abs(v) > maxTime {
		q.fail("%s=%.40q: a time in nanoseconds is expected", key, text)
		return otherwise
	}
	return uint64(math.Round(max(v, 0)))
}

// interval reads from and to, which are the whole recording when they aren't there.
func (q *query) interval() (from, to uint64) {
	from, to = q.time("from", 0), q.time("to", math.MaxUint64)
	if from > to {
		q.fail("from=%d is after to=%d", from, to)
	}
	return from, to
}

func (q *query) function() uint32 {
	if !q.has("f") {
		q.fail("f=: the ID of a function is expected")
	}
	return uint32(q.integer("f", 0, 0, math.MaxUint32))
}

// list reads numbers with commas between.
func (q *query) list(key string, most int) []uint32 {
	text := q.values.Get(key)
	if text == "" {
		return nil
	}
	parts := strings.SplitN(text, ",", most+1)
	if len(parts) > most {
		q.fail("%s: at most %d are answered at once", key, most)
		return nil
	}
	list := make([]uint32, len(parts))
	for i, part := range parts {
		list[i] = q.number(key, part)
	}
	return list
}

func (q *query) number(key, text string) uint32 {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		q.fail("%s: %.40q is no number", key, text)
	}
	return uint32(n)
}

// lanes reads the lanes of an analysis, in order and each once; nil is all.
func (q *query) lanes(count int) []uint32 {
	if v := q.values.Get("lanes"); v == "" || v == "all" {
		return nil
	}
	list := q.list("lanes", maxLanes)
	slices.Sort(list)
	list = slices.Compact(list)
	if n := len(list); n > 0 && int64(list[n-1]) >= int64(count) {
		q.fail("lanes: there is no lane %d", list[n-1])
	}
	return list
}

// rows reads LANE:FIRST:COUNT with commas between.
func (q *query) rows(lanes, width int) []timeline.LaneRows {
	text := q.values.Get("lanes")
	if text == "" {
		return nil
	}
	parts := strings.SplitN(text, ",", maxLanes+1)
	if len(parts) > maxLanes {
		q.fail("lanes: at most %d are answered at once", maxLanes)
		return nil
	}
	list, total := make([]timeline.LaneRows, 0, len(parts)), 0
	for _, part := range parts {
		numbers := strings.Split(part, ":")
		if len(numbers) != 3 {
			q.fail("lanes: %.40q is not LANE:FIRST:COUNT", part)
			return nil
		}
		lane, first, count := q.number("lanes", numbers[0]), q.number("lanes", numbers[1]), q.number("lanes", numbers[2])
		if q.err == nil && (int64(lane) >= int64(lanes) || first > math.MaxInt32 || count > maxRows) {
			q.fail("lanes: %.40q is a lane that isn't there, or more than %d rows", part, maxRows)
		}
		if q.err != nil {
			return nil
		}
		total += int(count)
		list = append(list, timeline.LaneRows{Lane: lane, First: int(first), Count: int(count)})
	}
	if total > maxRows || total*width > maxBars {
		q.fail("lanes: %d rows of %d pixels are more than is answered at once (%d rows, %d pixels in all)", total, width, maxRows, maxBars)
	}
	return list
}

// text reads what is to be found.
func (q *query) text(key string) string {
	text := q.values.Get(key)
	if len(text) > maxGlob {
		q.fail("%s: at most %d bytes can be found", key, maxGlob)
		return ""
	}
	return text
}

// choice reads one of some words; the first is what it is when it isn't there.
func (q *query) choice(key string, words ...string) string {
	text := q.values.Get(key)
	if text == "" {
		return words[0]
	}
	if !slices.Contains(words, text) {
		q.fail("%s=%.40q: it is one of %s", key, text, strings.Join(words, ", "))
	}
	return text
}

// ticket reads the name that a page gives to a request, under which it is told of its progress.
func (q *query) ticket() string {
	text := q.values.Get("ticket")
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
	}
	if len(text) > maxTicket || strings.ContainsFunc(text, func(r rune) bool { return !safe(r) }) {
		q.fail("ticket: at most %d letters and digits", maxTicket)
		return ""
	}
	return text
}
