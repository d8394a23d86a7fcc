package main

import (
	"bufio"
	"fmt"
	"io"

	"github.com/callreel/callreel/internal/safejson"
)

// writeJSON writes v and a newline.
func writeJSON(w io.Writer, v any) error {
	text, err := safejson.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// writeSummary writes v to the file that --summary names, if any.
func writeSummary(path string, mode fileMode, v any) error {
	if path == "" {
		return nil
	}
	if err := writeOutput(path, true, mode, func(w io.Writer) error { return writeJSON(w, v) }); err != nil {
		return fmt.Errorf("callreel: writing the summary: %w", err)
	}
	return nil
}

// jsonList streams a key and its list, an item a line.
func jsonList(w *bufio.Writer, key string, n int, item func(i int) any) error {
	fmt.Fprintf(w, "%q:[", key)
	for i := range n {
		if i > 0 {
			w.WriteByte(',')
		}
		line, err := safejson.Marshal(item(i))
		if err != nil {
			return err
		}
		w.WriteByte('\n')
		w.Write(line)
	}
	w.WriteString("]")
	return nil
}
