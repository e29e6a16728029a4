package naming

import (
	"encoding/json"
	"net/netip"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// launcher says how a program is told what to start.
type launcher struct {
	// before are words that come before the name of what is started.
	before []string
	// values are options that have a value, after a space.
	values []string
	// named is the option whose value is the name, if it is given; -m of Python is one.
	named []string
	// packages are options whose value is a package to install. One alone gives the name; of several the command
	// after them does, because the others are what it needs.
	packages []string
	// code are options whose value is the program itself: that has no name but the launcher's.
	code []string
	// installs says that it may install what it starts: two that do so at the same time collide.
	installs bool
	// runsFiles says that the name is that of a file. If another launcher starts one of these, as npx tsx does,
	// the file gives the name.
	runsFiles bool
}

// launchers are programs that start others. Of all others the program itself gives the name.
var launchers = map[string]launcher{
	"npx": {packages: []string{"-p", "--package"}, values: []string{"-c", "--call", "-w", "--workspace"},
		installs: true},
	"npm": {before: []string{"exec", "x"}, packages: []string{"-p", "--package"}, values: []string{"-c", "--call"},
		installs: true},
	"pnpm": {before: []string{"dlx", "exec"}, installs: true},
	"yarn": {before: []string{"dlx", "exec"}, packages: []string{"-p", "--package"}, installs: true},
	"bun":  {before: []string{"x", "run"}, installs: true},
	"bunx": {packages: []string{"-p", "--package"}, installs: true},
	"uvx":  {values: []string{"--from", "-p", "--python", "--with", "--index", "--index-url"}, installs: true},
	"uv": {before: []string{"tool", "run"},
		values: []string{"--directory", "--project", "--from", "-p", "--python", "--with"}, installs: true},
	"pipx":   {before: []string{"run"}, values: []string{"--spec", "--python"}, installs: true},
	"docker": {before: []string{"run"}, values: valuesOfDocker, installs: true},
	"podman": {before: []string{"run"}, values: valuesOfDocker, installs: true},
	"node": {values: []string{"-r", "--require", "--import", "--env-file"},
		code: []string{"-e", "--eval", "-p", "--print"}, runsFiles: true},
	"tsx":     {before: []string{"watch"}, code: []string{"-e", "--eval"}, runsFiles: true},
	"ts-node": {code: []string{"-e", "--eval"}, runsFiles: true},
	"deno":    {before: []string{"run"}, installs: true},
	"python":  {named: []string{"-m"}, code: []string{"-c"}, runsFiles: true},
	"python3": {named: []string{"-m"}, code: []string{"-c"}, runsFiles: true},
	"go":      {before: []string{"run"}, installs: true},
	"java":    {named: []string{"-jar"}, values: []string{"-cp", "-classpath"}},
	"dotnet":  {before: []string{"run"}, named: []string{"--project"}, installs: true},
	"dnx":     {installs: true},
}

var valuesOfDocker = []string{
	"-e", "--env", "--env-file", "-v", "--volume", "--mount", "--name", "--network", "--net", "-p", "--publish",
	"-u", "--user", "-w", "--workdir", "--entrypoint", "-l", "--label", "--platform", "--memory", "-m", "--cpus",
	"--add-host",
}

// IsLauncher reports whether a word is the name of a program that starts others, such as npx.
func IsLauncher(word string) bool {
	_, is := launchers[word]
	return is
}

// Installs reports whether a command may install something before it serves.
func Installs(command []string) bool { return launchers[ProgramOf(command)].installs }

// RunsInContainer reports whether a command starts a program in a container, whose files are not here.
func RunsInContainer(command []string) bool {
	return slices.Contains(containers, ProgramOf(withoutEnv(command)))
}

// ProgramOf returns the name of the program of a command, as launchers has it.
func ProgramOf(command []string) string {
	return strings.ToLower(withoutEnding(path.Base(strings.ReplaceAll(command[0], `\`, "/"))))
}

// containers are launchers whose files are not here.
var containers = []string{"docker", "podman"}

// withoutEnv returns the command that env starts with other variables; command itself if that is not env, or env starts
// none.
func withoutEnv(command []string) []string {
	if ProgramOf(command) != "env" {
		return command
	}
	for i, arg := range command[1:] {
		if !strings.HasPrefix(arg, "-") && !strings.Contains(arg, "=") {
			return withoutEnv(command[1+i:])
		}
	}
	return command
}

// OfCommand returns the name of the package, image or file that a command has a launcher start in a directory, or
// else of its own program.
func OfCommand(command []string, dir string) (name string, isLaunched bool) {
	command = withoutEnv(command)
	program := withoutEnding(path.Base(strings.ReplaceAll(command[0], `\`, "/")))
	how, isLauncher := launchers[strings.ToLower(program)]
	if !isLauncher {
		return program, false
	}
	isOfContainer := slices.Contains(containers, strings.ToLower(program))
	var packages []string
	for args := command[1:]; len(args) > 0; args = args[1:] {
		arg := args[0]
		option, value, has := strings.Cut(arg, "=")
		switch {
		case slices.Contains(how.code, option):
			return program, false
		case slices.Contains(how.named, option) && has:
			return nameIn(value), true
		case slices.Contains(how.named, arg) && len(args) > 1:
			return nameIn(args[1]), true
		case slices.Contains(how.packages, option) && has:
			packages = append(packages, value)
		case slices.Contains(how.packages, arg) && len(args) > 1:
			packages = append(packages, args[1])
			args = args[1:]
		case slices.Contains(how.values, arg):
			args = args[min(1, len(args)-1):]
		case strings.HasPrefix(arg, "-"), slices.Contains(how.before, arg):
		case len(packages) == 1:
			return nameIn(packages[0]), true
		case how.runsFiles:
			return nameOfFile(arg, dir), true
		case !isOfContainer && launchers[nameIn(arg)].runsFiles && len(args) > 1:
			return OfCommand(append([]string{nameIn(arg)}, args[1:]...), dir)
		default:
			return nameIn(arg), true
		}
	}
	if len(packages) > 0 {
		return nameIn(packages[0]), true
	}
	return program, false
}

var (
	versionOf = regexp.MustCompile(`(.)(@|==|:)[^/@:=]*$`)
	ending    = regexp.MustCompile(`\.(exe|cmd|bat|[cm]?[jt]s|py|sh|jar|rb|pl|php|csproj|dll)$`)
)

// plainFiles are names of files and folders that say nothing of what is in them.
var plainFiles = []string{
	"index", "main", "server", "app", "mcp", "cli", "run", "start", "packages", "dist", "build", "lib", "src",
	"bin", "out", "cmd", "__main__", "stdio",
}

func withoutEnding(name string) string { return ending.ReplaceAllString(name, "") }

// nameIn returns the name in that of a package, image or file: without scope, folder, version and ending.
func nameIn(text string) string {
	text = strings.ReplaceAll(text, `\`, "/")
	text = versionOf.ReplaceAllString(strings.TrimSuffix(text, "/..."), "$1")
	for {
		folder, name := path.Split(strings.TrimSuffix(text, "/"))
		name = withoutEnding(name)
		if folder = strings.Trim(folder, "./"); folder == "" || !slices.Contains(plainFiles, strings.ToLower(name)) {
			return name
		}
		text = folder
	}
}

// nameOfFile returns the name of a program that a file is, or of what it is a part of if its own name says
// nothing: the package of Node.js, or the folder.
func nameOfFile(file, dir string) string {
	isPlain := func(name string) bool { return slices.Contains(plainFiles, strings.ToLower(name)) }
	name := nameIn(path.Base(strings.ReplaceAll(file, `\`, "/")))
	if !isPlain(name) {
		return name
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	full, err := filepath.Abs(file)
	for folder := filepath.Dir(full); err == nil && folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
		var node struct{ Name string }
		if data, err := os.ReadFile(filepath.Join(folder, "package.json")); err == nil {
			_ = json.Unmarshal(data, &node) // what is none has no name
		}
		for _, name := range []string{nameIn(node.Name), filepath.Base(folder)} {
			if name != "" && !isPlain(name) {
				return name
			}
		}
	}
	return name
}

// affixes are parts of names that each server has.
var affixes = regexp.MustCompile(
	`(?i)^(mcp[-_.]server[-_.]|server[-_.]|mcp[-_.])|([-_.]mcp[-_.]server|[-_.]server[-_.]mcp|[-_.]mcp|[-_.]server)$`)

// Short cuts off what the names of most servers have in common.
func Short(name string) string {
	if short := affixes.ReplaceAllString(name, ""); len(short) > 2 {
		return short
	}
	return name
}

// OfURL returns the name in a host, empty if there is none: notion of mcp.notion.com.
func OfURL(address string) string {
	at, err := url.Parse(address)
	if err != nil {
		return ""
	}
	host := strings.ToLower(at.Hostname())
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
		return ""
	}
	labels := strings.Split(host, ".")
	for len(labels) > 2 && slices.Contains([]string{"mcp", "api", "www", "server"}, labels[0]) {
		labels = labels[1:]
	}
	return labels[max(0, len(labels)-2)]
}
