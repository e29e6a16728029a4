package stdio

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/environ"
	"github.com/mcp-sse/mcp-sse/internal/remember"
)

// choosing are the variables that choose code or an account, also where nobody has given them to the server on
// purpose: how their names begin, and what is in them. Names are compared in upper case.
var (
	choosingPrefixes = []string{"NODE_", "NPM_CONFIG_", "PYTHON", "UV_", "PIP_", "LD_", "DYLD_", "AWS_", "KUBE"}
	choosingParts    = []string{"TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "PROFILE", "HOST"}
)

// ofMachine are names of this machine, which is another one for each start of a container. They choose nothing
// unless somebody has given them on purpose.
var ofMachine = []string{"HOSTNAME", "HOSTTYPE"}

// scripts are the endings of files that are programs for an interpreter. Other files in the arguments
// may be data, which changes all the time.
var scripts = []string{".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".pyz", ".rb", ".pl", ".php", ".sh", ".jar", ".wasm", ".dll"}

// file is what the identity has of a file: another version of a program has another time or size.
type file struct {
	Path string
	Time time.Time
	Size int64
}

// Identity returns what stays the same as long as the server should say the same of itself. The server is the
// program, the arguments, the times and sizes of the program and of scripts that the arguments name, and the
// variables that it was given or that choose code or an account. The place is the directory, and the other
// variables that it inherits. Of values of variables there are only hashes. It reads the file system.
func (c Command) Identity() remember.Identity {
	identity := c.identity()
	identity.AnyFolder = c.placeOfNone()
	return identity
}

// identity is Identity for this place alone.
func (c Command) identity() remember.Identity {
	files := []file{stat(c.program())}
	for _, arg := range c.Args {
		if isScript(arg) {
			files = append(files, stat(c.inDir(arg)))
		}
	}
	given, around := c.variables()
	server, _ := json.Marshal(struct { // texts, times and numbers can all be JSON
		Args  []string
		Env   string
		Files []file
	}{append([]string{c.Path}, c.Args...), hashOf(given), files})
	dir, _ := filepath.Abs(c.Dir)
	place, _ := json.Marshal(struct{ Dir, Env string }{dir, hashOf(around)})
	return remember.Identity{Server: string(server), Place: string(place)}
}

// program returns the path of the program.
func (c Command) program() string {
	if filepath.Base(c.Path) != c.Path {
		return c.inDir(c.Path)
	}
	if found, err := exec.LookPath(c.Path); err == nil {
		return found
	}
	return c.Path
}

func isScript(arg string) bool { return slices.Contains(scripts, filepath.Ext(arg)) }

// inDir returns the path of a file that the process would find under a name.
func (c Command) inDir(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(cmp.Or(c.Dir, "."), name)
}

// stat returns what the identity has of a regular file; for any other name, the name alone.
func stat(path string) file {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return file{Path: path}
	}
	return file{path, info.ModTime(), info.Size()}
}

// variables returns those that make the server, and those of its place. Of two with one name the last counts.
func (c Command) variables() (given, around []string) {
	env, inherits := c.Env, func(name string) bool { return slices.Contains(c.Inherited, name) }
	if env == nil {
		env, inherits = os.Environ(), func(string) bool { return true }
	}
	all := make(map[string]string, len(env))
	for _, variable := range env {
		name, _, _ := strings.Cut(variable, "=")
		all[name] = variable
	}
	for name, variable := range all {
		switch {
		case !inherits(name):
			given = append(given, variable)
		case environ.IsAmbient(name) || slices.Contains(ofMachine, name):
		case environ.IsPlace(name):
			around = append(around, variable)
		case chooses(name):
			given = append(given, variable)
		default:
			around = append(around, variable)
		}
	}
	return given, around
}

// chooses reports whether a variable chooses code or an account.
func chooses(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc(choosingPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) ||
		slices.ContainsFunc(choosingParts, func(part string) bool { return strings.Contains(name, part) })
}

// hashOf returns the hash of variables.
func hashOf(variables []string) string {
	slices.Sort(variables)
	sum := sha256.Sum256([]byte(strings.Join(variables, "\x00")))
	return hex.EncodeToString(sum[:])
}
