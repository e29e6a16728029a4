package stdio

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"github.com/mcp-sse/mcp-sse/internal/environ"
)

// A command is portable if the directory in which it runs takes no part in which program that is: then the
// server should say the same in another one. A cloned folder must not be able to choose what servers say in
// others, so whatever is in doubt is not portable. What the program is, and what it may be asked to run:
//
//	program                     | is portable with
//	----------------------------|------------------------------------------------------------------------
//	a shell, a project's runner | nothing
//	an interpreter              | an absolute script first, which is no such program, and then as any other
//	a runner of packages        | options that are known, and then a package, which is no such program
//	any other                   | options, what begins with a digit, absolute paths, URLs and stdio: another word may be
//	                            | a task of the project
//
// With each of them, no argument may name a program, as it may be run: nice bash, doppler run -- npx.

var (
	// local are programs that run what the directory says, or a text that may.
	local = []string{
		"sh", "bash", "zsh", "dash", "fish", "ksh", "cmd", "powershell", "pwsh", "env", "xargs", "sudo", "nohup", "time", "timeout",
		"make", "just", "task", "npm", "pnpm", "yarn", "bun", "deno", "tsx", "ts-node", "cargo", "go", "uv", "poetry", "pipenv", "pdm",
		"hatch", "rye", "pixi", "conda", "mamba", "bundle", "rake", "dotnet", "gradle", "mvn", "docker-compose", "direnv", "mise",
		"asdf", "nix", "nix-shell", "devbox", "devenv", "busybox", "nice", "doppler", "dotenv", "dotenv-cli", "cross-env", "corepack",
		"composer", "gulp", "grunt", "invoke", "inv", "nox", "tox", "poe", "mage", "rails", "scons", "ant", "sbt", "lein", "bazel", "bazelisk",
		"nx", "turbo", "volta", "rbenv", "pyenv", "nodenv", "fnm", "nvm", "jake", "lerna", "rush", "moon", "tilt", "earthly", "mix", "stack", "cabal",
	}
	// interpreters run the script that is their first argument. With any other one they may look for it in the
	// directory.
	interpreters = regexp.MustCompile(`^(node|nodejs|python[0-9.]*|pypy[0-9.]*|ruby|perl|php)$`)
	// runners run the package that is their first argument after the options.
	runners = map[string]runner{
		"npx":    {flags: []string{"-y", "--yes", "-q", "--quiet"}, values: []string{"-p", "--package"}},
		"bunx":   {flags: []string{"-y", "--bun"}, values: []string{"-p", "--package"}},
		"uvx":    {flags: []string{"-q", "--quiet", "--isolated", "--no-cache", "--refresh"}, values: []string{"--from", "--with", "-p", "--python"}},
		"pipx":   {command: "run", flags: []string{"-q", "--quiet", "--no-cache"}, values: []string{"--spec", "--python"}},
		"docker": {command: "run", anyOption: true},
		"podman": {command: "run", anyOption: true},
	}
	// plainWords are words that any server may have as arguments.
	plainWords = regexp.MustCompile(`^(-.*|[0-9][0-9A-Za-z.:]*|stdio|true|false)$`)
	// choosers are files in a directory, or in one above it, that choose code: registries, versions, variables.
	choosers = []string{
		".npmrc", ".yarnrc", ".yarnrc.yml", ".pnp.cjs", ".pnpmfile.cjs", "uv.toml", "bunfig.toml", "deno.json", "deno.jsonc",
		".env", ".tool-versions", "mise.toml", ".mise.toml", ".Rprofile", ".Renviron", "tsconfig.json", ".node-version", ".nvmrc",
		".python-version", "doppler.yaml", ".mise.local.toml", "mise.local.toml", ".mise", ".config/mise.toml", ".ruby-version", "__pypackages__",
	}
	// registry matches the first part of the name of an image, and scheme the beginning of a URL.
	registry = regexp.MustCompile(`^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(\.[A-Za-z]{2,}|:[0-9]+)$`)
	scheme   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+:`)
	// bare matches an argument that may name a package, with its version: group 1 is the name.
	bare = regexp.MustCompile(`^((?:@[A-Za-z0-9._~-]+/)?[A-Za-z0-9][A-Za-z0-9._~-]*)(?:\[[^\]]*\])?(?:@.*|[=<>!~]=.*)?$`)
)

// runner is how a runner of packages is used.
type runner struct {
	command       string   // its first argument, if it has others that do something else
	flags, values []string // options without and with a value that choose no other code than they say
	anyOption     bool     // what it runs is in a container, where there is no directory
}

// argsOf returns the arguments after the package; ok is false if it is not known what the runner runs.
func (r runner) argsOf(args []string) (rest []string, ok bool) {
	if r.command != "" {
		if len(args) == 0 || args[0] != r.command {
			return nil, false
		}
		args = args[1:]
	}
	for ; len(args) > 0; args = args[1:] {
		option, _, hasValue := strings.Cut(args[0], "=")
		switch {
		case r.anyOption:
			return args, true
		case !strings.HasPrefix(option, "-"):
			return args[1:], !isRunner(args[0])
		case slices.Contains(r.flags, args[0]), hasValue && slices.Contains(r.values, option):
		case slices.Contains(r.values, option) && len(args) > 1:
			args = args[1:]
		default:
			return nil, false
		}
	}
	return nil, false
}

// isRunner reports whether a word names a program that may run another one, or a package of such a program.
func isRunner(word string) bool {
	name := nameOf(word)
	_, is := runners[name]
	return is || slices.Contains(local, name) || interpreters.MatchString(name)
}

// nameOf returns the name of a program.
func nameOf(path string) string {
	name := strings.ToLower(filepath.Base(path))
	for _, ending := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// namesProgram reports whether a part of an argument names a program.
func (c Command) namesProgram(arg string) bool {
	if scheme.MatchString(arg) && strings.Contains(arg, "//") { // a URL
		return false
	}
	words := strings.FieldsFunc(arg, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("=,;&|<>()`'\"", r) })
	return slices.ContainsFunc(words, func(word string) bool {
		switch {
		case word == "true" || word == "false":
			return false
		case isRunner(word):
			return true
		case filepath.IsAbs(word):
			return isProgram(word)
		}
		return filepath.Base(word) == word && c.isInPath(word)
	})
}

// isInPath reports whether a program of this name is found, by this process or by its child.
func (c Command) isInPath(name string) bool {
	if _, err := exec.LookPath(name); err == nil {
		return true
	}
	return slices.ContainsFunc(c.environment(), func(variable string) bool {
		value, isPath := strings.CutPrefix(variable, "PATH=")
		return isPath && slices.ContainsFunc(filepath.SplitList(value), func(folder string) bool { return isProgram(filepath.Join(folder, name)) })
	})
}

// isProgram reports whether a file can be run.
func isProgram(path string) bool {
	_, err := exec.LookPath(path)
	return filepath.IsAbs(path) && err == nil
}

// runsItself reports whether the program is what it seems to be, and nothing in its arguments says what to run in its place.
func (c Command) runsItself(program string) bool {
	name, rest := nameOf(program), c.Args
	how, isPackages := runners[name]
	switch {
	case slices.Contains(local, name):
		return false
	case isPackages:
		var ok bool
		if rest, ok = how.argsOf(c.Args); !ok {
			return false
		}
	case interpreters.MatchString(name):
		if len(c.Args) == 0 || !filepath.IsAbs(c.Args[0]) || !isFile(c.Args[0]) {
			return false
		}
		if slices.ContainsFunc(strings.Split(filepath.ToSlash(c.Args[0]), "/"), isRunner) { // .../npm/bin/npm-cli.js
			return false
		}
		if rest = c.Args[1:]; slices.ContainsFunc(rest, isOdd) {
			return false
		}
	default:
		target, err := filepath.EvalSymlinks(program)
		if err != nil || isRunner(target) || slices.ContainsFunc(c.Args, isOdd) {
			return false
		}
	}
	return !slices.ContainsFunc(rest, c.namesProgram)
}

// isOdd reports whether an argument may be a word of the project in which the program runs.
func isOdd(arg string) bool {
	return !plainWords.MatchString(arg) && !filepath.IsAbs(arg) && !scheme.MatchString(arg)
}

// hasRelativeVariable reports whether a variable names something in a directory, as PYTHONPATH does with "." and
// with an empty element, and with "src" where that is there.
func (c Command) hasRelativeVariable(dir string) bool {
	for _, variable := range c.environment() {
		name, value, _ := strings.Cut(variable, "=")
		if environ.IsAmbient(name) || environ.IsPlace(name) || value == "" {
			continue
		}
		isList := listVariable.MatchString(strings.ToUpper(name))
		for _, element := range filepath.SplitList(value) {
			if isList && (element == "" || filepath.Clean(element) == ".") { // another relative one counts if it is there
				return true
			}
		}
		if isNamed(dir, value) || strings.Contains(value, "./") && !scheme.MatchString(value) {
			return true
		}
	}
	return false
}

// listVariable matches the names of variables that are lists of folders.
var listVariable = regexp.MustCompile(`(PATH|LIB|DIRS?)$`)

// isPortable reports whether the command is portable now. It reads the file system.
func (c Command) isPortable() bool {
	dir, err := filepath.Abs(c.Dir)
	folders, known := c.folders(dir)
	program := c.program()
	switch {
	case err != nil || !known || !filepath.IsAbs(program) || !isFile(program) || c.findsIn(folders):
		return false
	case filepath.Base(c.Path) != c.Path && !filepath.IsAbs(c.Path):
		return false
	case !c.runsItself(program) || c.hasRelativeVariable(dir):
		return false
	}
	var packages []string
	for _, arg := range c.Args {
		_, value, isOption := strings.Cut(arg, "=")
		if !strings.HasPrefix(arg, "-") || !isOption {
			value = arg
		}
		if isRelative(value) || isScript(value) && !isFile(value) || isNamed(dir, arg) {
			return false
		}
		if named := bare.FindStringSubmatch(value); named != nil {
			packages = append(packages, named[1])
		}
	}
	return !slices.ContainsFunc(folders, func(folder string) bool { return c.choosesAbove(folder, packages) })
}

// folders returns the folders in which the process may look for what it runs: that in which it runs, under each of
// its names, and those that an editor names to it. known is false if one cannot be found out.
func (c Command) folders(dir string) (folders []string, known bool) {
	folders = []string{dir}
	for _, variable := range c.environment() {
		name, value, _ := strings.Cut(variable, "=")
		if environ.IsPlace(name) && filepath.IsAbs(value) {
			folders = append(folders, filepath.SplitList(value)...)
		}
	}
	for _, folder := range slices.Clone(folders) {
		target, err := filepath.EvalSymlinks(folder)
		if err != nil {
			return nil, false
		}
		folders = append(folders, target)
	}
	return folders, true
}

// findsIn reports whether PATH has programs of one of these folders, or of packages in a folder above it.
func (c Command) findsIn(folders []string) bool {
	for _, variable := range c.environment() {
		value, isPath := strings.CutPrefix(variable, "PATH=")
		if !isPath {
			continue
		}
		for _, element := range filepath.SplitList(value) {
			project, _, isOfPackages := strings.Cut(element, string(filepath.Separator)+"node_modules"+string(filepath.Separator))
			ofFolder := func(folder string) bool {
				return isIn(element, folder) && !isOfUser(element, c.home()) || isOfPackages && isIn(folder, project)
			}
			if !filepath.IsAbs(element) || slices.ContainsFunc(folders, ofFolder) {
				return true
			}
		}
	}
	return false
}

// isIn reports whether a path is a folder or in it. Nothing counts as in the root.
func isIn(path, folder string) bool {
	rest, err := filepath.Rel(folder, path)
	return err == nil && folder != filepath.Dir(folder) && filepath.IsLocal(rest)
}

// isOfUser reports whether an element of PATH is one of the user's own, such as ~/.local/bin: somebody who works in
// the home directory has it in PATH everywhere.
func isOfUser(element, home string) bool {
	rest, err := filepath.Rel(home, element)
	return home != "" && err == nil && (rest == "bin" || strings.HasPrefix(rest, ".") && filepath.IsLocal(rest))
}

// environment returns the variables of the process.
func (c Command) environment() []string {
	if c.Env == nil {
		return os.Environ()
	}
	return c.Env
}

// isNamed reports whether an argument may name something in a directory: as a whole, or a part of it.
func isNamed(dir, arg string) bool {
	if scheme.MatchString(arg) && !strings.HasPrefix(arg, "-") && strings.Contains(arg, "//") { // a URL
		return false
	}
	parts := append([]string{arg}, strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune("=,: ", r) })...)
	if len(arg) > 2 && arg[0] == '-' && arg[1] != '-' { // -cFILE
		parts = append(parts, arg[2:])
	}
	return slices.ContainsFunc(parts, func(part string) bool {
		return part != "" && !filepath.IsAbs(part) && exists(filepath.Join(dir, part))
	})
}

// choosesAbove reports whether a directory or one above it has what chooses code, or one of these packages.
func (c Command) choosesAbove(dir string, packages []string) bool {
	for at := dir; ; at = filepath.Dir(at) {
		if c.choosesIn(at, packages) {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// isRelative reports whether an argument is a path that means another file in another directory.
func isRelative(arg string) bool {
	first, _, hasSlash := strings.Cut(filepath.ToSlash(arg), "/")
	switch {
	case arg == "." || arg == ".." || strings.HasPrefix(arg, "~"):
		return true
	case filepath.IsAbs(arg) || scheme.MatchString(arg) && !strings.HasPrefix(strings.ToLower(arg), "file:"):
		return false
	case strings.HasPrefix(arg, "@") && !strings.ContainsAny(arg, " ;&|") && strings.Count(arg, "/") == 1: // a package of npm
		return false
	}
	return hasSlash && !registry.MatchString(first)
}

// choosesIn reports whether a directory has a file that chooses code, or one of these packages.
func (c Command) choosesIn(dir string, packages []string) bool {
	for _, name := range choosers {
		if name == ".npmrc" && dir == c.home() { // the user's own, which counts in all directories
			continue
		}
		if exists(filepath.Join(dir, name)) {
			return true
		}
	}
	if dir != c.home() && exists(filepath.Join(dir, "node_modules")) { // npx finds a package there by the name in its package.json
		return true
	}
	own := struct {
		Name string
		Bin  any
	}{}
	data, err := os.ReadFile(filepath.Join(dir, "package.json"))
	isPackage := err == nil
	odd := isPackage && json.Unmarshal(data, &own) != nil
	bins, _ := own.Bin.(map[string]any)
	for _, name := range packages {
		_, runs := bins[name]
		if isPackageIn(filepath.Join(dir, name)) || exists(filepath.Join(dir, name+".py")) ||
			isPackage && (odd || own.Name == name || runs) {
			return true
		}
	}
	return false
}

// home returns the home directory that the process has.
func (c Command) home() (home string) {
	for _, variable := range c.environment() {
		if value, ok := strings.CutPrefix(variable, "HOME="); ok {
			home = value
		}
	}
	return home
}

// isPackageIn reports whether a folder has a package.
func isPackageIn(dir string) bool {
	return slices.ContainsFunc([]string{"package.json", "pyproject.toml", "setup.py", "__init__.py"},
		func(name string) bool { return exists(filepath.Join(dir, name)) })
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
