package process

import (
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestMapsLinesAreRead(t *testing.T) {
	for _, c := range []struct {
		line string
		want Mapping
	}{
		{
			"55d0c8a00000-55d0c8a2c000 r--p 00001000 fd:01 131 /usr/bin/a b\n",
			Mapping{Start: 0x55d0c8a00000, End: 0x55d0c8a2c000, Offset: 0x1000, Dev: 0xfd<<32 | 1, Inode: 131, Path: "/usr/bin/a b", Perm: PermRead},
		},
		{
			"7f00-8f00 rwxs 00000000 00:05 7      /memfd:x (deleted)\n",
			Mapping{Start: 0x7f00, End: 0x8f00, Dev: 5, Inode: 7, Path: "/memfd:x", Deleted: true, Perm: PermRead | PermWrite | PermExec | PermShared},
		},
		{
			"7ffd000-7ffe000 rw-p 00000000 00:00 0                          [stack]\n",
			Mapping{Start: 0x7ffd000, End: 0x7ffe000, Special: "[stack]", Perm: PermRead | PermWrite},
		},
		{"1000-2000 ---p 00000000 00:00 0 \n", Mapping{Start: 0x1000, End: 0x2000}},
		{
			`1000-2000 r--p 00000000 08:02 9 /a\012b` + "\n",
			Mapping{Start: 0x1000, End: 0x2000, Dev: 8<<32 | 2, Inode: 9, Path: "/a\nb", Perm: PermRead},
		},
		{
			"1000-2000 r--p 00000000 08:02 9 [odd name]\n",
			Mapping{Start: 0x1000, End: 0x2000, Dev: 8<<32 | 2, Inode: 9, Path: "[odd name]", Perm: PermRead},
		},
		{
			"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]",
			Mapping{Start: 0xffffffffff600000, End: 0xffffffffff601000, Special: "[vsyscall]", Perm: PermExec},
		},
	} {
		got, err := ParseMaps([]byte(c.line))
		if err != nil || len(got) != 1 || got[0] != c.want {
			t.Errorf("%q: %+v, %v, want %+v", c.line, got, err, c.want)
		}
	}
}

func TestBadMapsLinesAreRefused(t *testing.T) {
	good := "1000-2000 r--p 00000000 08:02 9 /a\n"
	for _, bad := range []string{
		"x", "1000-2000", "2000-1000 r--p 00000000 00:00 0\n", "1000-2000 r--p 00000000 00:00\n",
		"11112222333344445-2000 r--p 00000000 00:00 0\n", "1000-2000 r--p 00000000 00:00 9x\n",
		"1000-2000 r--p 00000000 00:00 123456789012345678901\n", "-2000 r--p 00000000 00:00 0\n",
		"1000-2000 r--p0 00000000 00:00 0\n", "\n",
	} {
		_, err := ParseMaps([]byte(good + bad))
		if !errors.Is(err, errMapsLine) || !strings.Contains(err.Error(), "offset 35") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestMappingKnowsItsBounds(t *testing.T) {
	m := Mapping{Start: 0x1000, End: 0x3000}
	if m.Size() != 0x2000 || !m.Contains(0x1000) || !m.Contains(0x2fff) || m.Contains(0x3000) || m.Contains(0xfff) {
		t.Errorf("%+v", m)
	}
	if got := (PermRead | PermWrite | PermExec | PermShared).String(); got != "rwxs" {
		t.Error(got)
	}
}

func TestStatSurvivesOddNames(t *testing.T) {
	const rest = " S 1 1 1 0 -1 4194304 1 0 0 0 1 2 3 4 20 0 1 0 5678 1000 200 18446744073709551615"
	for _, name := range []string{"sh", "a) S (b", "", "a b", ") R 1"} {
		got, err := parseStat([]byte("12 (" + name + ")" + rest + "\n"))
		want := stat{name: name, state: 'S', parent: 1, flags: 4194304, startTime: 5678}
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", name, got, err)
		}
	}
	for _, bad := range []string{"", "12", "12 (a", "12 a)", ")(", "12 (a) S 1 2 3", "12 (a)" + strings.Replace(rest, "5678", "x", 1)} {
		if _, err := parseStat([]byte(bad)); !errors.Is(err, errStat) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestStatusFieldsAreRead(t *testing.T) {
	got, err := ParseStatus([]byte("Name:\ta:b c\nTgid:\t7\nTracerPid:\t9\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nNSpid:\t7\t1\nVmLck:\t   12 kB\nVmHWM:\t   34 kB\n" +
		"ShdPnd:\t0000000000000100\nSigBlk:\t0000000000010000\nSigIgn:\t0000000000001004\nvoluntary_ctxt_switches:\t40\nnonvoluntary_ctxt_switches:\t2\nSigCgt:\tfffffffe7ffbfeff\nNoNewPrivs:\t1\nSeccomp:\t2\nx86_Thread_features:\tshstk wrss \nnonsense\n"))
	want := Status{
		Name: "a:b c", TGID: 7, TracerPID: 9, UIDs: [4]int{1, 2, 3, 4}, GIDs: [4]int{5, 6, 7, 8}, NSPIDs: []int{7, 1}, VMLock: 12 << 10, VMPeak: 34 << 10,
		SigPending: 0x100, SigBlocked: 0x10000, SigIgnored: 0x1004, Switches: 42, Waits: 40, SigCaught: 0xfffffffe7ffbfeff, NoNewPrivs: true, Seccomp: 2, ThreadFeatures: "shstk wrss",
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"Tgid:\tx\n", "NSpid:\t1 y\n", "SigBlk:\tg\n", "ShdPnd:\tg\n", "Seccomp:\t\n", "voluntary_ctxt_switches:\t-1\n", "VmLck:\t-1 kB\n"} {
		if _, err := ParseStatus([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestAuxvEndsAtItsMark(t *testing.T) {
	var data []byte
	for _, v := range []uint64{9, 0x401000, 7, 0x7f0000, 3, 0x400040, 5, 11, 33, 0x7ffe, 6, 4096, 25, 1, 0, 0, 9, 5} {
		data = binary.LittleEndian.AppendUint64(data, v)
	}
	want := Auxv{Entry: 0x401000, Base: 0x7f0000, Phdr: 0x400040, Phnum: 11, VDSO: 0x7ffe, PageSize: 4096}
	if got, err := ParseAuxv(data); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for _, n := range []int{0, 15, 16, 24, 112} {
		if _, err := ParseAuxv(data[:n]); !errors.Is(err, errAuxv) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func FuzzParseMaps(f *testing.F) {
	f.Add([]byte("55d0c8a00000-55d0c8a2c000 r--p 00001000 fd:01 131 /usr/bin/a\n7000-8000 rw-p 00000000 00:00 0 [heap]\n"))
	f.Add([]byte("1000-2000 r--p 0 0:0 0"))
	f.Fuzz(func(t *testing.T, text []byte) {
		maps, err := ParseMaps(text)
		if err != nil && maps != nil {
			t.Error("both mappings and an error")
		}
		for _, m := range maps {
			if m.End < m.Start || m.Path != "" && m.Special != "" {
				t.Errorf("%+v", m)
			}
		}
	})
}

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte("Name:\ta\nTgid:\t7\nUid:\t1\t2\t3\t4\nNSpid:\t7\t1\nVmLck:\t 12 kB\n"), []byte("1 (a) S 1 1 1 0 -1 4 1 0 0 0 1 2 3 4 20 0 1 0 5"))
	f.Fuzz(func(t *testing.T, status, stat []byte) {
		if s, err := ParseStatus(status); err == nil && s.VMLock%1024 != 0 {
			t.Errorf("%+v", s)
		}
		if s, err := parseStat(stat); err == nil && len(s.name) > len(stat) {
			t.Errorf("%+v", s)
		}
	})
}

func FuzzParseAuxv(f *testing.F) {
	f.Add(make([]byte, 32))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := ParseAuxv(data); err != nil && !errors.Is(err, errAuxv) {
			t.Error(err)
		}
	})
}
