package stdio_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/upstream/stdio"
)

func TestCheckFindsWhatDialWouldStart(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	program, text := write("program", 0o755), write("text", 0o644)
	for _, tt := range []struct {
		name string
		c    stdio.Command
		want string // in the error; "": there is none
	}{
		{"in PATH", stdio.Command{Path: "true"}, ""},
		{"a path", stdio.Command{Path: program}, ""},
		{"relative to its directory", stdio.Command{Path: "./program", Dir: dir}, ""},
		{"not in PATH", stdio.Command{Path: "no-such-program-anywhere"}, "no such program in PATH"},
		{"no such file", stdio.Command{Path: dir + "/nothing"}, "no such file"},
		{"not relative to it", stdio.Command{Path: "./nothing", Dir: dir}, "no such file"},
		{"not executable", stdio.Command{Path: text}, "chmod +x"},
		{"a directory", stdio.Command{Path: dir}, "it is a directory: give the path of a program"},
		{"nothing", stdio.Command{}, "no program is given"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.c.Check()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
}
