// Arguments calls functions with arguments of every kind, the same in each run, as arguments.c does.
//
//	arguments ROUNDS
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
)

type mode uint8

type request struct {
	ID     int32
	Path   string
	Weight float64
}

type server struct {
	name  string
	count int
	last  *request
}

//go:noinline
func (s *server) handle(path string, body []byte, m mode, w float32, ok bool) (int, error) {
	s.count++
	if len(path)%3 == 0 {
		return -s.count, errors.New("a third")
	}
	return s.count, nil
}

//go:noinline
func many(a int8, b uint16, c int64, d string, e, f, g, h, i, j int, r request, x float64, y uint32) string {
	return d + r.Path + strconv.Itoa(int(c)+e+f+g+h+i+j+int(r.ID)+int(r.Weight)+int(x)+int(y)+int(a)+int(b))
}

//go:noinline
func deep(n int, pad [100]int) int {
	if n == 0 {
		return pad[3]
	}
	pad[3] = n
	return deep(n-1, pad) + 1
}

//go:noinline
func gotInt(v int) { sink = v }

//go:noinline
func gotString(v string) { sink = len(v) }

var sink int

func main() {
	rounds, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	s := &server{name: "server"}
	for i := range rounds {
		s.last = &request{ID: int32(-i), Path: "/r/" + strconv.Itoa(i), Weight: float64(i) / 8}
		n, _ := s.handle(fmt.Sprintf("/p/%d", i*7919), []byte{byte(i), 1, 2, 3}, mode(i%4), float32(i)/2, i%2 == 0)
		gotInt(n)
		gotString(many(int8(-i), uint16(i*77), int64(i)*1e12, "d"+strconv.Itoa(i), i, i+1, i+2, i+3, i+4, i+5, *s.last, -float64(i), uint32(i)*3))
		gotInt(deep(i%3, [100]int{}))
	}
}
