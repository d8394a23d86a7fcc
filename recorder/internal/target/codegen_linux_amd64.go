package target

import "github.com/callreel/callreel/recorder/internal/stub/amd64"

func generator() codegen { return amd64.Generator{} }
