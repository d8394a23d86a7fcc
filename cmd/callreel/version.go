package main

import (
	"cmp"
	"runtime/debug"
)

// version is set by the linker, see the Makefile.
var version string

// versionText is what callreel says of its version. A build that the linker was told nothing of, go install's above
// all, has what Go wrote into it.
func versionText() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknownVersion
	}
	return versionOf(info)
}

// unknownVersion is that of a build of which nothing is known.
const unknownVersion = "devel"

// versionOf is the module's version: that of a release, or one that Go makes of the commit. A toolchain that makes none
// leaves the commit, and whether its files were changed.
func versionOf(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	var revision, modified string
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			modified = s.Value
		}
	}
	revision = cmp.Or(revision[:min(12, len(revision))], unknownVersion)
	if modified == "true" {
		revision += "-dirty"
	}
	return revision
}
