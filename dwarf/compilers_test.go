package dwarf

import (
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// builds are ways of building that the standard library's reader understands too.
var builds = []struct {
	by     realtest.Capability
	source string
	flags  string
}{
	{realtest.GCC, "nest.c", "-O2 -g -DNESTED"},
	{realtest.GCC, "nest.c", "-O0 -g -DNESTED"},
	{realtest.GCC, "nest.c", "-O2 -gdwarf-2 -DNESTED"},
	{realtest.GCC, "nest.c", "-O2 -gdwarf-2 -gstrict-dwarf"},
	{realtest.GCC, "nest.c", "-O2 -gdwarf-3 -DNESTED"},
	{realtest.GCC, "nest.c", "-O2 -gdwarf-4 -DNESTED"},
	{realtest.GCC, "nest.c", "-O2 -gdwarf-4 -gdwarf64"},
	{realtest.GCC, "nest.c", "-O2 -gdwarf-5 -gdwarf64"},
	{realtest.GCC, "nest.c", "-O2 -g -static"},
	{realtest.GCC, "nest.c", "-O2 -g -no-pie -fno-pie"},
	{realtest.GCC, "nest.c", "-O2 -g -ffunction-sections -Wl,--gc-sections"},
	{realtest.GCC, "nest.c", "-O2 -gdwarf-4 -ffunction-sections -Wl,--gc-sections"},
	{realtest.GCC, "nest.c", "-O2 -g -gz=zlib"},
	{realtest.GCC, "nest.c", "-O2 -g -m32 -shared -nostdlib -fPIC -DFREESTANDING"},
	{realtest.GCC, "nest.c", "-O2 -gdwarf-4 -m32 -shared -nostdlib -fPIC -DFREESTANDING"},
	{realtest.GCC, "nest.c", "-O2 -g -flto"},
	{realtest.GXX, "shapes.cc", "-O2 -g"},
	{realtest.GXX, "shapes.cc", "-O1 -gdwarf-2"},
	{realtest.GXX, "shapes.cc", "-O2 -gdwarf-3"},
	{realtest.GXX, "shapes.cc", "-O3 -gdwarf-4"},
	{realtest.GXX, "shapes.cc", "-O2 -g -fdebug-types-section"},
	{realtest.GXX, "shapes.cc", "-O2 -gdwarf-4 -fdebug-types-section"},
	{realtest.GXX, "shapes.cc", "-O2 -g -flto"},
	{realtest.GXX, "shapes.cc", "-O2 -g -ffunction-sections -Wl,--gc-sections"},
	{realtest.Clang, "nest.c", "-O2 -g"},
	{realtest.Clang, "nest.c", "-O2 -gdwarf-2"},
	{realtest.Clang, "nest.c", "-O2 -gdwarf-3"},
	{realtest.Clang, "nest.c", "-O2 -gdwarf-4"},
	{realtest.Clang, "nest.c", "-O2 -g -gline-tables-only"},
	{realtest.Clang, "nest.c", "-O2 -g -ffunction-sections -Wl,--gc-sections -fuse-ld=lld"},
	{realtest.Clang, "nest.c", "-O2 -gdwarf-4 -ffunction-sections -Wl,--gc-sections -fuse-ld=lld"},
	{realtest.Clang, "shapes.cc", "-O2 -g -lstdc++"},
	{realtest.Clang, "shapes.cc", "-O2 -gdwarf-4 -lstdc++"},
	{realtest.Clang, "shapes.cc", "-O2 -g -fdebug-types-section -lstdc++"},
	{realtest.Clang, "shapes.cc", "-O2 -g -flto -fuse-ld=lld -lstdc++"},
	{realtest.Clang, "nest.c", "-O2 -g -target aarch64-linux-gnu " + freestanding},
	{realtest.Clang, "nest.c", "-O2 -gdwarf-4 -target armv7-linux-gnueabi " + freestanding},
	{realtest.Clang, "nest.c", "-O2 -gdwarf-4 -target s390x-linux-gnu " + freestanding},
	{realtest.Clang, "nest.c", "-O2 -gdwarf-4 -target powerpc64-linux-gnu " + freestanding},
	{realtest.Clang, "nest.c", "-O2 -gdwarf-4 -target powerpc-linux-gnu " + freestanding},
	{realtest.Rustc, "shapes.rs", "-O -g"},
}

// freestanding links for machines whose libraries are not there.
const freestanding = "-fPIC -shared -nostdlib -fuse-ld=lld -DFREESTANDING -Wl,-z,undefs"

func TestCompilersSayTheSameToTheStandardLibrarysReader(t *testing.T) {
	for _, b := range builds {
		t.Run(string(b.by)+" "+b.source+" "+b.flags, func(t *testing.T) {
			t.Parallel()
			path := build(t, b.by, b.source, strings.Fields(b.flags)...)
			got, want := list(t, openData(t, path, Options{})), yard(t, path)
			if strings.Contains(b.flags, "-flto") {
				// Functions are declared in other units, with other tables of files.
				got.withoutDeclarations()
				want.withoutDeclarations()
			}
			compare(t, got, want)
		})
	}
}
