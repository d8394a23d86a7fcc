package main

import "github.com/callreel/callreel/internal/runtimedir"

// privateFolder is where nobody else can put another file in the place of ours; "" is the one for temporary files, where nobody else can
// remove ours. XDG_RUNTIME_DIR isn't it: after su it may be another user's.
func privateFolder() string {
	dir, err := runtimedir.Own()
	if err != nil {
		return ""
	}
	return dir
}
