package main

import (
	"fmt"
	"time"
)

// authors stand as who packed it. The address is one of GitHub's that take no mail: Debian's rules want an address.
const authors = "The callreel authors <callreel@users.noreply.github.com>"

// noLicence is what packages say while the owner has chosen none.
const noLicence = `callreel comes from https://github.com/callreel/callreel

Copyright 2026 the callreel authors

Its owner has chosen no licence yet. Until then the copyright is its authors', and nobody else has rights beyond those
that the law gives. What others wrote and is part of the program comes under the licences in third-party-licences.
`

// overrides are what lintian says of the package and is wrong of a program as this one is.
const overrides = `# Go links its programs statically, on purpose: one file that runs on any distribution.
callreel: statically-linked-binary [usr/bin/callreel]
`

// debian are the files that only Debian's packages have.
func (r *release) debian() []file {
	changelog := fmt.Sprintf("callreel (%s) unstable; urgency=medium\n\n  * Built from %s.\n  * The project's CHANGELOG.md says what is new.\n\n -- %s  %s\n",
		r.version, r.describe, authors, r.date.Format(time.RFC1123Z))
	return []file{
		{docs + "/changelog.gz", 0o644, compress([]byte(changelog))},
		{"share/lintian/overrides/callreel", 0o644, []byte(overrides)},
	}
}
