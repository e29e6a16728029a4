package clientfile

import (
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/environ"
)

// placeNames are the names by which clients and shells call the folder of a window, or what is open there. Other names
// of this kind are in package environ.
var placeNames = []string{
	"workspaceFolder", "workspaceFolderBasename", "workspaceRoot", "fileWorkspaceFolder", "file", "fileDirname",
	"relativeFile", "cwd", "PWD", "OLDPWD",
}

var anyReference = regexp.MustCompile(`\$\{(?:env:)?([A-Za-z_]+)[^}]*\}`)

// scripts are endings of names of files that an argument names. An argument without one may be anything, such as the
// name of an image.
var scripts = []string{
	".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".rb", ".php", ".sh", ".ps1", ".jar", ".dll", ".exe",
	".json", ".yaml", ".yml", ".toml", ".env", ".db", ".sqlite", ".sqlite3",
}

// dependsOnFolder returns why the server depends on the folder in which its client starts it; empty if it does not.
func (f *Found) dependsOnFolder() string {
	texts := slices.Concat(f.Command, []string{f.Dir, f.EnvFile, f.URL}, slices.Collect(maps.Values(f.Env)),
		slices.Collect(maps.Values(f.Header)))
	for _, text := range texts {
		for _, found := range anyReference.FindAllStringSubmatch(text, -1) {
			if slices.Contains(placeNames, found[1]) || environ.IsPlace(found[1]) {
				return "it has " + found[0]
			}
		}
	}
	if f.Dir != "" && !isWhole(f.Dir) {
		return "it has a relative path: " + f.Dir
	}
	if f.EnvFile != "" && !isWhole(f.EnvFile) {
		return "it has a relative path: " + f.EnvFile
	}
	if f.Dir != "" { // its paths are relative to that
		return ""
	}
	for _, text := range append(slices.Clone(f.Command), slices.Sorted(maps.Values(f.Env))...) {
		if isRelativePath(text) {
			return "it has a relative path"
		}
	}
	return ""
}

// isRelativePath reports whether a text, or the value of an option, is a path that depends on the folder.
func isRelativePath(text string) bool {
	if option, value, has := strings.Cut(text, "="); has && strings.HasPrefix(option, "-") {
		text = value
	}
	text = strings.ReplaceAll(text, `\`, "/")
	switch {
	case text == ".", text == "..", strings.HasPrefix(text, "./"), strings.HasPrefix(text, "../"):
		return true
	case text == "", text[0] == '-', text[0] == '@', text[0] == '$', isWhole(text), strings.ContainsAny(text, " :"):
		return false // an option, a package, a reference, a URL or an image with a tag
	}
	return slices.Contains(scripts, strings.ToLower(path.Ext(text)))
}

// isWhole reports whether a path does not depend on the folder.
func isWhole(text string) bool {
	return filepath.IsAbs(text) || text[0] == '/' || text[0] == '~' || text[0] == '$'
}
