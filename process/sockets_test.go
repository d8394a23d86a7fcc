package process

import "testing"

func TestSocketsAreNamedByTheirEnds(t *testing.T) {
	const inet = "  12: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 54321 1 0000000000000000 20 4 30 10 -1"
	const listening = "   0: 00000000:07E8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1603 1 0000000047e9a2e3 100 0 0 10 0"
	const inet6 = "   1: 00000000000000000000000001000000:1F90 00000000000000000000000001000000:D431 01 00000000:00000000 00:00000000 00000000     0        0 777 1"
	for line, want := range map[string]Socket{
		inet: {Inode: 54321}, listening: {Inode: 1603}, inet6: {Inode: 777},
	} {
		s, ok := parseInetSocket([]byte(line))
		if !ok || s.Inode != want.Inode || s.Listens != (line == listening) {
			t.Errorf("%s: %+v, %v", line, s, ok)
		}
	}
	for line, want := range map[string]string{
		inet: "socket 127.0.0.1:8080 -> 127.0.0.1:54321", listening: "socket 0.0.0.0:2024", inet6: "socket [::1]:8080 -> [::1]:54321",
	} {
		if s, _ := parseInetSocket([]byte(line)); s.String() != want {
			t.Errorf("%s: %q, want %q", line, s.String(), want)
		}
	}
	for line, want := range map[string]string{
		"00000000fc7b15c2: 00000003 00000000 00000000 0001 03  1599":                                 "unix socket",
		"00000000fc7b15c2: 00000002 00000000 00010000 0001 01 23456 /run/a b.sock":                   "unix socket /run/a b.sock",
		"00000000fc7b15c2: 00000002 00000000 00010000 0001 01 23456 @/tmp/.X11-unix/X0":              "unix socket @/tmp/.X11-unix/X0",
		"Num       RefCount Protocol Flags    Type St Inode Path":                                    "",
		"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout": "",
	} {
		s, ok := parseUnixSocket([]byte(line))
		if ok != (want != "") || ok && s.String() != want {
			t.Errorf("%s: %q, %v", line, s.String(), ok)
		}
	}
}

func FuzzSockets(f *testing.F) {
	f.Add([]byte("  12: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 54321 1"))
	f.Add([]byte("00000000fc7b15c2: 00000002 00000000 00010000 0001 01 23456 /run/a b.sock"))
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, parse := range []func([]byte) (Socket, bool){parseInetSocket, parseUnixSocket} {
			if s, ok := parse(line); ok && (s.Inode == 0 || s.String() == "") {
				t.Errorf("%+v", s)
			}
		}
	})
}
