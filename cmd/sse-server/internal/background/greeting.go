package background

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/internal/environ"
	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
	"github.com/mcp-sse/mcp-sse/internal/upstream/stdio"
)

// SharedOption is the option of an address that is a socket for this user alone.
const SharedOption = "shared"

const (
	// greetingPath is where a shared sse-server says who it is.
	greetingPath = "/-/shared"
	// instanceHeader names the sse-server that a request is for: the next one at the socket may be another.
	instanceHeader = "Sse-Server-Instance"
)

// greeting is what a shared sse-server says of itself.
type greeting struct {
	PID      int               `json:"pid"`
	Instance string            `json:"instance"`
	Parts    map[string]string `json:"parts"`
}

// PartsOf returns all that decides what an sse-server with these arguments serves, and for whom: a hash of each part,
// by what people call it. Programs that share one agree in each.
//
// Those that share the sse-server of a file differ in their folder, in PATH and in other variables, of which it takes
// nothing but what the file names: these are no parts then.
func PartsOf(c *config.Config, args []string) map[string]string {
	texts := map[string][]string{}
	options := args
	if i := slices.Index(options, "--"); i >= 0 {
		options = options[:i]
	}
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		if name == "--"+SharedOption || c.IsOfFile() && slices.Contains(notOfFile, name) { // where, not what
			continue
		}
		part := "the option " + name
		if separator := map[string]string{"--env": "=", "--header": ":"}[name]; separator != "" {
			of, _, _ := strings.Cut(value, separator)
			part += " " + of
		}
		texts[part] = append(texts[part], value)
	}
	texts["the command"] = c.Command
	for file, sum := range c.Digests() {
		if whole, err := filepath.Abs(file); err == nil && c.IsOfFile() {
			file = whole
		}
		texts["the file "+file] = []string{hex.EncodeToString(sum[:])}
	}
	if c.IsOfFile() {
		for _, variable := range os.Environ() {
			if name, value := environ.Split(variable); c.Names(name) || isOption(name) {
				texts["the variable "+name] = []string{value}
			}
		}
		return hashesOf(texts)
	}
	if c.DependsOnDir() {
		dir, _ := os.Getwd() // by PWD, which this program may have and the next one not
		dir, _ = filepath.EvalSymlinks(dir)
		texts["the directory"] = []string{dir}
	}
	for _, s := range c.Each() {
		if command, ok := s.Upstream().(stdio.Command); ok {
			texts[programPart+s.Command[0]] = programsOf(command.Path)
		}
	}
	for _, variable := range os.Environ() {
		if name, value := environ.Split(variable); !isOfWindow(c, name) {
			texts["the variable "+name] = []string{value} // of two with one name the last counts
		}
	}
	texts["the variable PATH"] = []string{environ.LastingPath(os.Getenv("PATH"))}
	return hashesOf(texts)
}

// hashesOf returns a hash of each part.
func hashesOf(texts map[string][]string) map[string]string {
	parts := map[string]string{}
	for part, text := range texts {
		sum := sha256.Sum256(fmt.Appendf(nil, "%q", text))
		parts[part] = hex.EncodeToString(sum[:])
	}
	return parts
}

// notOfFile are the options of the shared sse-server of a file that say nothing of what is served: a service has others
// than a program that starts one.
var notOfFile = []string{"--config", "--of-file", "--watch", "--exit-unused", "--start-check", "--no-start-check"}

// isOption reports whether a variable may be an option of sse-server.
func isOption(name string) bool { return strings.HasPrefix(name, environ.Fold("SSE_SERVER_")) }

// programPart begins what people call the program of a command without a path.
const programPart = "the program that PATH has for "

// programsOf returns the files that PATH has for a name: the program, and if that is a script which begins with
// #!/usr/bin/env, its interpreter.
func programsOf(name string) (files []string) {
	if filepath.Base(name) != name {
		return nil // it is in the command
	}
	for name != "" {
		file, err := exec.LookPath(name)
		if err != nil || len(files) == 2 {
			break
		}
		files = append(files, file)
		name = interpreterOf(file)
	}
	return files
}

// interpreterOf returns the name after #!/usr/bin/env with which a file begins; empty if it does not.
func interpreterOf(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	start := make([]byte, 128)
	n, _ := file.Read(start)
	line, _, _ := strings.Cut(string(start[:n]), "\n")
	words := strings.Fields(line)
	if len(words) == 0 || words[0] != "#!/usr/bin/env" {
		return ""
	}
	for _, word := range words[1:] {
		if !strings.HasPrefix(word, "-") {
			return word
		}
	}
	return ""
}

// isOfWindow reports whether a variable says where a window is, and nothing of the server: also in which folder, unless
// what is served depends on that. A variable that the configuration names belongs to the server.
func isOfWindow(c *config.Config, name string) bool {
	return !c.Names(name) && (environ.IsAmbient(name) || environ.IsPlace(name) && !c.DependsOnDir())
}

// inheritable returns the environment of a shared sse-server: this process's, without the variables that say where it
// was started, and with the PATH that all have who share it. The sse-server of a file gets the variables of a login,
// and those that the file names.
func inheritable(c *config.Config, env []string) []string {
	var inherited []string
	for _, variable := range env {
		switch name, value := environ.Split(variable); {
		case name == "PATH":
			inherited = append(inherited, "PATH="+environ.LastingPath(value))
		case c.ConnectsToFile() && !environ.IsOfLogin(name) && !c.Names(name) && !isOption(name):
		case !isOfWindow(c, name):
			inherited = append(inherited, variable)
		}
	}
	return inherited
}

// maxNamed bounds how many differences an error names.
const maxNamed = 5

// differenceFrom returns an error that names what is different in the parts of a program that wants to share
// the sse-server, nil if nothing is.
func (g *greeting) differenceFrom(parts map[string]string) error {
	var names []string
	for part := range g.Parts {
		if parts[part] != g.Parts[part] {
			names = append(names, part)
		}
	}
	for part := range parts {
		if _, known := g.Parts[part]; !known {
			names = append(names, part)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	more := ""
	if len(names) > maxNamed {
		more = fmt.Sprintf(" and %d more", len(names)-maxNamed)
		names = names[:maxNamed]
	}
	help := ""
	if slices.Contains(names, "the directory") {
		help = "; with --dir DIR, and files by their whole paths, it is one for all directories"
	}
	if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, programPart) }) {
		help += "; with the whole path of the program, PATH does not choose it"
	}
	return fmt.Errorf("the sse-server of this name differs in %s%s: stop it (kill %d), "+
		"or give --connect another port%s",
		strings.Join(names, ", "), more, g.PID, help)
}

// ForWindows serves those who share this sse-server: it says who it is, and takes requests that are for it. parts
// returns its PartsOf. browsers gets the windows that can open one.
func ForWindows(parts func() map[string]string, browsers *Browsers, next http.Handler) http.Handler {
	instance := rand.Text()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == greetingPath:
			httpanswer.WriteValue(w, r, http.StatusOK, greeting{os.Getpid(), instance, parts()})
		case r.Header.Get(instanceHeader) != instance:
			http.Error(w, "this is another sse-server", http.StatusNotFound) // as of a session that has ended
		case r.URL.Path == browserPath:
			browsers.serve(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
