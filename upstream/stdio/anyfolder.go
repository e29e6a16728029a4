package stdio

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// What a server says in one folder may be told in another one only if no folder had a say in it: a folder that
// somebody has cloned must not choose what servers say elsewhere. Whether a command looks at its folder cannot be
// read off the command. So what is told in any folder is what the server says in an empty one:
//
//	what                      | there it is
//	--------------------------|----------------------------------------------------------------------------
//	the folder                | empty, and below the gateway's own, which nobody else can write to
//	program and arguments     | the same; if a path in them is relative, it is another server: see elsewhere
//	given variables           | the same
//	variables of the user     | the same, and part of the place: see ofUser
//	PATH                      | without folders of one session, and part of the place
//	all other variables       | not set: they may be those of a folder, as a shell sets them that enters one

// InEmptyFolder returns c as it runs in a folder that is empty: nothing of the folder or of the terminal in which
// this process runs takes part in what it says there.
func (c Command) InEmptyFolder(dir string) jsonrpc.Dialer { return c.alone(dir) }

func (c Command) alone(dir string) Command {
	given, around := c.variables()
	env := given
	for _, variable := range around {
		if name, _, _ := strings.Cut(variable, "="); isOfUser(name) {
			env = append(env, variable)
		}
	}
	if path := "PATH=" + c.variable("PATH"); !slices.Contains(given, path) {
		env = append(env, "PATH="+lastingPath(c.variable("PATH")))
	}
	if c.Env == nil {
		for _, variable := range os.Environ() {
			name, _, _ := strings.Cut(variable, "=")
			c.Inherited = append(c.Inherited, name)
		}
	}
	c.Dir, c.Env = dir, env
	return c
}

// elsewhere is a folder that does not exist.
var elsewhere = filepath.Join(string(filepath.Separator), "an empty folder")

// placeOfNone returns the place in which the command runs with InEmptyFolder; empty if it would be another server
// there, as with a relative path of a program, or if it serves each of its clients something else.
func (c Command) placeOfNone() string {
	alone := c.alone(elsewhere)
	there := alone.identity()
	if c.PrincipalEnv != "" || there.Server != c.identity().Server {
		return ""
	}
	return there.Place + " " + alone.variable("PATH")
}

// variable returns the value of a variable of the process. Of two with one name the last counts.
func (c Command) variable(name string) (value string) {
	for _, variable := range c.environment() {
		if text, is := strings.CutPrefix(variable, name+"="); is {
			value = text
		}
	}
	return value
}

// environment returns the variables of the process.
func (c Command) environment() []string {
	if c.Env == nil {
		return os.Environ()
	}
	return c.Env
}

// lastingPath returns a PATH without relative elements and those of one session, as agents make them: another
// session would have others.
func lastingPath(path string) string {
	temporary := filepath.Clean(os.TempDir())
	return strings.Join(slices.DeleteFunc(filepath.SplitList(path), func(element string) bool {
		rest, err := filepath.Rel(temporary, element)
		return !filepath.IsAbs(element) || err == nil && filepath.IsLocal(rest) ||
			slices.Contains(strings.Split(filepath.ToSlash(element), "/"), "tmp")
	}), string(filepath.ListSeparator))
}

// isOfUser reports whether an inherited variable is of the user, the machine or its network: a server that is
// started without it may not work. Names are exact, and those of Windows as it writes them.
func isOfUser(name string) bool {
	return slices.Contains(userVariables, name) || strings.HasPrefix(name, "LC_")
}

var userVariables = []string{
	"HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
	"APPDATA", "LOCALAPPDATA", "USERPROFILE", "USERNAME", "HOMEDRIVE", "HOMEPATH", "ALLUSERSPROFILE", "PUBLIC",
	"SystemRoot", "SystemDrive", "windir", "ComSpec", "PATHEXT", "ProgramData", "ProgramFiles", "ProgramFiles(x86)",
	"ProgramW6432", "CommonProgramFiles", "OS", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE",
}
