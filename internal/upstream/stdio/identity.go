package stdio

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/environ"
	"github.com/mcp-sse/mcp-sse/internal/remember"
)

// choosing are the variables that choose code or an account, also where nobody has given them to the server on
// purpose: how their names begin, and what is in them. Names are compared in upper case.
var (
	choosingPrefixes = []string{"NODE_", "NPM_CONFIG_", "PYTHON", "UV_", "PIP_", "LD_", "DYLD_", "AWS_", "KUBE"}
	choosingParts    = []string{"TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "PROFILE", "HOST"}
)

// ofMachine are names of this machine, which is another one for each start of a container. Unless somebody has given
// them on purpose they belong to the place, and are not set in an empty folder.
var ofMachine = []string{"HOSTNAME", "HOSTTYPE"}

// scripts are the endings of files that are programs for an interpreter. Other files in the arguments
// may be data, which changes all the time.
var scripts = []string{
	".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".pyz", ".rb", ".pl", ".php", ".sh", ".jar", ".wasm", ".dll",
}

// Identity returns what stays the same as long as the server should say the same of itself. The server is the
// program, the arguments, the times and sizes of the program and of scripts that the arguments name, and the
// variables that it was given or that choose code or an account. The place is the directory, PATH, and the other
// variables that it inherits. Of values of variables there are only hashes. It reads the file system.
func (c Command) Identity() remember.Identity {
	identity := c.identity()
	identity.AnyFolder = c.placeOfNone(identity.Server)
	return identity
}

// identity is Identity for this place alone.
func (c Command) identity() remember.Identity {
	files := []string{stat(c.program())}
	for _, arg := range c.Args {
		if isScript(arg) {
			files = append(files, stat(c.inDir(arg)))
		}
	}
	all := c.variables()
	// %q keeps bytes that are no UTF-8, as names of files may have them. JSON does not.
	command := append([]string{c.Path}, c.Args...)
	return remember.Identity{
		Command: fmt.Sprintf("%q", command),
		Server:  fmt.Sprintf("%q %s %q", command, variablesHash(all.given), files),
		Place: fmt.Sprintf("%s %s", folder(c.Dir),
			variablesHash(append(all.around, all.here...), environ.PathKey(all.path))),
	}
}

// folder returns what tells a folder from others: its path, where that leads, and, where the system says so, which
// folder is there now.
func folder(dir string) string {
	path, _ := filepath.Abs(dir)
	leadsTo, _ := filepath.EvalSymlinks(path)
	return fmt.Sprintf("%q %q %s", path, leadsTo, folderID(path))
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

// stat returns what the identity has of a regular file: another version of a program has another time or size. For
// any other name it is the name alone.
func stat(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return path
	}
	return fmt.Sprintf("%s\x00%d %d", path, info.ModTime().UnixNano(), info.Size())
}

// variables are those of a command, by what they belong to.
type variables struct {
	given  []string // the server
	around []string // the place: of the user, as far as that can be known
	here   []string // the place: of its folder or this machine
	path   string   // the inherited PATH, and the place
}

// variables returns those of c. Of two with one name the last counts.
func (c Command) variables() (of variables) {
	all := make(map[string]string)
	for _, variable := range c.environment() {
		name, _ := environ.Split(variable)
		all[name] = variable
	}
	for name, variable := range all {
		switch {
		case !c.inherits(name):
			of.given = append(of.given, variable)
		case name == "PATH":
			_, of.path = environ.Split(variable)
		case environ.IsAmbient(name):
		case environ.IsPlace(name) || slices.Contains(ofMachine, name):
			of.here = append(of.here, variable)
		case chooses(name):
			of.given = append(of.given, variable)
		default:
			of.around = append(of.around, variable)
		}
	}
	return of
}

// environment returns the variables that c has been given, or inherits.
func (c Command) environment() []string {
	if c.Env == nil {
		return os.Environ()
	}
	return c.Env
}

// inherits reports whether nobody has given a variable to c on purpose.
func (c Command) inherits(name string) bool {
	return c.Env == nil || slices.ContainsFunc(c.Inherited, func(one string) bool { return environ.Fold(one) == name })
}

// chooses reports whether a variable chooses code or an account.
func chooses(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc(choosingPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) ||
		slices.ContainsFunc(choosingParts, func(part string) bool { return strings.Contains(name, part) })
}

// variablesHash returns the hash of variables, and of other texts about them.
func variablesHash(variables []string, more ...string) string {
	slices.Sort(variables)
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", variables, more))
	return hex.EncodeToString(sum[:])
}
